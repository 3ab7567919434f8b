import fc from 'fast-check'
import { expect, test } from 'vitest'

import { toCount, toUsd, toUsdPerMillion } from './amounts-in-json.ts'
import { readPrice } from './price.ts'

test('credits are dollars with at most six decimals, exactly', () => {
  expect([toUsd(20_000_001n), toUsd('1'), toUsd(0n)]).toEqual([20.000_001, 0.000_001, 0])
  const largest = BigInt(Number.MAX_SAFE_INTEGER)
  expect(JSON.stringify(toUsd(largest))).toBe('9007199254.740992')
})

test('an amount that JSON would change is refused', () => {
  expect(toCount(String(Number.MAX_SAFE_INTEGER))).toBe(Number.MAX_SAFE_INTEGER)
  expect(() => toCount(BigInt(Number.MAX_SAFE_INTEGER) + 1n)).toThrow(RangeError)
})

test.each([
  [0, '0'],
  [1, '0.000001'],
  [150_000, '0.15'],
  [3_000_000, '3'],
  [30_000_000, '30'],
  [12_000_001, '12.000001'],
])('%i pico-USD per token are %s USD per million', (picoUsd, text) => {
  expect(toUsdPerMillion(picoUsd)).toBe(text)
})

test('every price is read as it was written', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1_000_000_000_000 }), (picoUsd) => {
      expect(readPrice(toUsdPerMillion(picoUsd))).toBe(BigInt(picoUsd))
    }),
  )
})
