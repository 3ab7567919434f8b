import { expect, test } from 'vitest'

import { parseCsv } from './csv.ts'

test.each([
  ['a,b\n1,2\n', [{ a: '1', b: '2' }]],
  [
    'a,b\r\n1,2\r\n3,4',
    [
      { a: '1', b: '2' },
      { a: '3', b: '4' },
    ],
  ],
  ['a,b\n"x, ""y""\nz",\n', [{ a: 'x, "y"\nz', b: '' }]],
  ['a,b\n1,\n', [{ a: '1', b: '' }]],
  ['a,b\n1,', [{ a: '1', b: '' }]],
  ['a,b\nonly one\n1,2,3\n', []],
  ['', []],
])('%j', (source, rows) => {
  expect(parseCsv(source)).toEqual(rows)
})
