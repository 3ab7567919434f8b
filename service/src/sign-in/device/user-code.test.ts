import { expect, test } from 'vitest'

import { createUserCode, readUserCode } from './user-code.ts'

test('a code is eight consonants with a hyphen, and hardly ever the same', () => {
  const codes = Array.from({ length: 1000 }, createUserCode)
  for (const code of codes)
    expect(code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
  expect(new Set(codes).size).toBe(1000)
})

test.each([
  ['WDJB-MJHT', 'WDJB-MJHT'],
  [' wdjb mjht ', 'WDJB-MJHT'],
  ['wdjbmjht', 'WDJB-MJHT'],
  ['WDJB-MJH', undefined],
  ['WDJB-MJHTT', undefined],
  ['WDJA-MJHT', undefined],
  ['', undefined],
  ['W'.repeat(10_000), undefined],
])('%j is read as %s', (typed, code) => {
  expect(readUserCode(typed)).toBe(code)
})
