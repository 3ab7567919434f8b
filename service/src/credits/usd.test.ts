import { expect, test } from 'vitest'

import { creditsOf, usdOf } from './usd.ts'

test.each([
  ['20', 20_000_000n, '20.00'],
  ['12.5', 12_500_000n, '12.50'],
  ['0.000001', 1n, '0.000001'],
  ['0.29', 290_000n, '0.29'],
  ['999999999.999999', 999_999_999_999_999n, '999999999.999999'],
  ['0', 0n, '0.00'],
])('%s USD are %s credits', (usd, credits, shown) => {
  expect(creditsOf(usd)).toBe(credits)
  expect(usdOf(credits)).toBe(shown)
})

test.each(['', '-1', '1e3', '1.0000001', '1.', '.5', ' 1', '1000000000', '1,5', 'NaN'])(
  '%j is no amount',
  (usd) => {
    expect(creditsOf(usd)).toBeUndefined()
  },
)

test('less than nothing is shown as such', () => {
  expect(usdOf(-1_500_000n)).toBe('-1.50')
})
