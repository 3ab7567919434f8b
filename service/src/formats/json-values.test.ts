import { expect, test } from 'vitest'

import { tokensOf } from './json-values.ts'

test.each([0, 1, 1e8])('%d tokens can have been used', (tokens) => {
  expect(tokensOf(tokens)).toBe(tokens)
})

test.each([-1, 1.5, 1e8 + 1, NaN, Infinity, '7', null, undefined, {}])(
  '%j tokens are none',
  (tokens) => {
    expect(tokensOf(tokens)).toBe(0)
  },
)
