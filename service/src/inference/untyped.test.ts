import { expect, test } from 'vitest'

import { tokensOf } from './untyped.ts'

test.each([0, 1, 1e9])('%d tokens can have been used', (tokens) => {
  expect(tokensOf(tokens)).toBe(tokens)
})

test.each([-1, 1.5, 1e9 + 1, NaN, Infinity, '7', null, undefined, {}])(
  '%j tokens are none',
  (tokens) => {
    expect(tokensOf(tokens)).toBe(0)
  },
)
