import { expect, test } from 'vitest'

import { readLabels, writeLabels } from './label-lines.ts'

test('labels are read as they were written', () => {
  const labels = { cost_center: '4711', 'team/name': 'a:b c' }
  expect(readLabels(writeLabels(labels))).toEqual(labels)
})

test.each([
  ['', {}],
  ['  \n\n', {}],
  [' a :  1 \n', { a: '1' }],
  ['a', { a: '' }],
])('%j is read as %j', (text, labels) => {
  expect(readLabels(text)).toEqual(labels)
})
