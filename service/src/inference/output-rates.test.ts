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
  rates.observe('a', 'm', { outputTokens: 0, tookMs: 5 })
  rates.observe('a', 'm', { outputTokens: 5, tookMs: 0 })
  expect(rates.tokensPerSecond('a', 'm')).toBeCloseTo(10, 1)
})
