import { expect, test } from 'vitest'

import { creditsFor, readPrice, worstCaseCredits } from './price.ts'

test('a price per million tokens is read exactly', () => {
  expect(readPrice('0.15')).toBe(150_000n)
  expect(readPrice('3')).toBe(3_000_000n)
  expect(readPrice('12.000001')).toBe(12_000_001n)
})

const price = {
  input: 3_000_000n,
  output: 15_000_000n,
  cachedInput: 300_000n,
  cacheWrite: 3_750_000n,
}

test('credits are rounded once, up', () => {
  const usage = { inputTokens: 1, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0 }
  expect(creditsFor(usage, price)).toBe(3n)
  expect(creditsFor(usage, { ...price, input: 1n })).toBe(1n)
  expect(creditsFor({ ...usage, inputTokens: 0 }, price)).toBe(0n)
})

test('cached and cache-written tokens have prices of their own and are not counted twice', () => {
  const usage = { inputTokens: 100, cachedInputTokens: 60, cacheWriteTokens: 30, outputTokens: 10 }
  expect(creditsFor(usage, price)).toBe(10n * 3n + 18n + 113n - 0n + 150n)
})

test('the worst case: all the output, and an input of the dearest kind', () => {
  const asked = { inputTokens: 100, isExact: true, maxOutputTokens: 10 }
  expect(worstCaseCredits(asked, price)).toBe(375n + 150n)
  expect(worstCaseCredits({ ...asked, isExact: false }, price)).toBe(413n + 150n)
})

test('absurd counts neither overflow nor pay anybody', () => {
  const usage = { inputTokens: 1e300, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: -5 }
  expect(creditsFor(usage, price)).toBe(3_000_000_000n)
  const dearest = { ...price, input: 999_999_999_999n }
  expect(creditsFor(usage, dearest)).toBeLessThan(BigInt(Number.MAX_SAFE_INTEGER))
})
