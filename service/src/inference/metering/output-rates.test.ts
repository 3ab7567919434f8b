import { expect, test } from 'vitest'

import { createOutputRates } from './output-rates.ts'

test('a rate is used once ten calls are known, and follows the last hundred', () => {
  const rates = createOutputRates()
  const observe = (times: number, outputTokens: number) => {
    for (let call = 0; call < times; call++) {
      rates.observe('a', 'm', { outputTokens, tookMs: 2000 })
    }
  }
  observe(9, 400)
  expect(rates.tokensPerSecond('a', 'm')).toBe(50)
  observe(1, 400)
  expect(rates.tokensPerSecond('a', 'm')).toBeCloseTo(200)
  observe(1000, 20)
  expect(rates.tokensPerSecond('a', 'm')).toBeCloseTo(10, 1)
  expect(rates.tokensPerSecond('b', 'm')).toBe(50)
  for (let call = 0; call < 100; call++)
    rates.observe('b', 'm', { outputTokens: 5000, tookMs: 50_000 })
  for (let call = 0; call < 100; call++) rates.observe('b', 'm', { outputTokens: 1, tookMs: 500 })
  expect(rates.tokensPerSecond('b', 'm')).toBeGreaterThan(90)
  rates.observe('a', 'm', { outputTokens: 0, tookMs: 5 })
  rates.observe('a', 'm', { outputTokens: 5, tookMs: 0 })
  expect(rates.tokensPerSecond('a', 'm')).toBeCloseTo(10, 1)
})
