import { expect, test } from 'vitest'

import { matches } from './if-none-match.ts'

test.each([
  [undefined, false],
  ['', false],
  ['"a"', true],
  ['W/"a"', true],
  ['"b", "a"', true],
  ['*', true],
  ['"b"', false],
  ['a', false],
  [`${'"b",'.repeat(500)}"a"`, false],
])('If-None-Match: %s', (sent, isMatch) => {
  expect(matches(sent, '"a"')).toBe(isMatch)
})
