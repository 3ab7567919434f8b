import { expect, test } from 'vitest'

import { formatUsd, parseUsd, toSafeNumber, toUsd } from './money.ts'

test.each([
  ['20', 20_000_000n, '20.00'],
  ['12.5', 12_500_000n, '12.50'],
  ['0.000001', 1n, '0.000001'],
  ['0.29', 290_000n, '0.29'],
  ['999999999.999999', 999_999_999_999_999n, '999999999.999999'],
  ['0', 0n, '0.00'],
])('%s USD are %s credits', (usd, credits, shown) => {
  expect(parseUsd(usd)).toBe(credits)
  expect(formatUsd(credits)).toBe(shown)
})

test.each(['', '-1', '1e3', '1.0000001', '1.', '.5', ' 1', '1000000000', '1,5', 'NaN'])(
  '%j is no amount',
  (usd) => {
    expect(parseUsd(usd)).toBeUndefined()
  },
)

test('a negative amount keeps its sign', () => {
  expect(formatUsd(-1_500_000n)).toBe('-1.50')
})

test('credits are dollars with at most six decimals, exactly', () => {
  expect([toUsd(20_000_001n), toUsd('1'), toUsd(0n)]).toEqual([20.000_001, 0.000_001, 0])
  const largest = BigInt(Number.MAX_SAFE_INTEGER)
  expect(JSON.stringify(toUsd(largest))).toBe('9007199254.740992')
})

test('an amount that JSON would change is refused', () => {
  expect(toSafeNumber(String(Number.MAX_SAFE_INTEGER))).toBe(Number.MAX_SAFE_INTEGER)
  expect(() => toSafeNumber(BigInt(Number.MAX_SAFE_INTEGER) + 1n)).toThrow(RangeError)
})
