import fc from 'fast-check'
import { expect, test } from 'vitest'

import {
  creditsFor,
  formatPrice,
  formatPriceOfCall,
  readPrice,
  readPriceOfCall,
  worstCaseCredits,
} from './price.ts'

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

test('what is cached for an hour, and every search, have prices of their own', () => {
  const dear = { ...price, cacheWriteHour: readPrice('6'), webSearch: readPriceOfCall('0.01') }
  const usage = {
    inputTokens: 100,
    cachedInputTokens: 0,
    cacheWriteTokens: 40,
    cacheWriteHourTokens: 30,
    outputTokens: 0,
    webSearches: 2,
  }
  // 60 x 3 + 10 x 3.75 + 30 x 6, and 2 x 10,000
  expect(creditsFor(usage, dear)).toBe(180n + 38n + 180n + 20_000n)
  const estimate = { inputTokens: 100, isExact: true, maxOutputTokens: 0, webSearches: 2 }
  expect(worstCaseCredits(estimate, dear)).toBe(600n + 20_000n)
  expect(formatPriceOfCall(Number(dear.webSearch))).toBe('0.01')
})

test('the worst case is all the output, and input of the most expensive kind', () => {
  const estimate = { inputTokens: 100, isExact: true, maxOutputTokens: 10, webSearches: 0 }
  expect(worstCaseCredits(estimate, price)).toBe(375n + 150n)
  expect(worstCaseCredits({ ...estimate, isExact: false }, price)).toBe(413n + 150n)
})

test('absurd counts neither overflow nor make a cost negative', () => {
  const usage = { inputTokens: 1e300, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: -5 }
  expect(creditsFor(usage, price)).toBe(3_000_000_000n)
  const expensive = { ...price, input: 999_999_999_999n }
  expect(creditsFor(usage, expensive)).toBeLessThan(BigInt(Number.MAX_SAFE_INTEGER))
})

test.each([
  [0, '0'],
  [1, '0.000001'],
  [150_000, '0.15'],
  [3_000_000, '3'],
  [30_000_000, '30'],
  [12_000_001, '12.000001'],
])('%i pico-USD per token are %s USD per million', (picoUsd, text) => {
  expect(formatPrice(picoUsd)).toBe(text)
})

test('readPrice reads every price that formatPrice writes', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1_000_000_000_000 }), (picoUsd) => {
      expect(readPrice(formatPrice(picoUsd))).toBe(BigInt(picoUsd))
    }),
  )
})
