import { expect, test } from 'vitest'

import { createOutputRates } from './output-rates.ts'

const writer = (organizationId = 'org_1', upstream = 'a') => ({
  organizationId,
  upstream,
  model: 'm',
})
const usual = { maxOutputTokens: 10_000, tookMs: 2000 }

function open() {
  const rates = createOutputRates()
  const observe = (times: number, written: object, who = writer()) => {
    for (let call = 0; call < times; call++) {
      rates.observe(who, { ...usual, outputTokens: 0, ...written })
    }
  }
  return { observe, rateOf: (who = writer()) => rates.tokensPerSecond(who) }
}

test('a rate is used once ten calls are known, and follows the last hundred', () => {
  const { observe, rateOf } = open()
  observe(9, { outputTokens: 400 })
  expect(rateOf()).toBe(50)
  observe(1, { outputTokens: 400 })
  expect(rateOf()).toBeCloseTo(200)
  observe(1000, { outputTokens: 20 })
  expect(rateOf()).toBeCloseTo(10, 1)
  const b = writer('org_1', 'b')
  expect(rateOf(b)).toBe(50)
  observe(100, { outputTokens: 5000, tookMs: 50_000 }, b)
  observe(100, { outputTokens: 1, tookMs: 500 }, b)
  expect(rateOf(b)).toBeGreaterThan(90)
  observe(1, { outputTokens: 0, tookMs: 5 })
  observe(1, { outputTokens: 5, tookMs: 0 })
  expect(rateOf()).toBeCloseTo(10, 1)
})

test('a report of more than was asked for counts as what was asked for', () => {
  const { observe, rateOf } = open()
  observe(12, { outputTokens: 5 })
  const before = rateOf()
  observe(1, { outputTokens: 50_000, maxOutputTokens: 10 })
  expect(rateOf()).toBeLessThan(2 * before)
})

test('what one organization has written is not the price of another one', () => {
  const { observe, rateOf } = open()
  observe(50, { outputTokens: 20 }, writer('org_1'))
  observe(50, { outputTokens: 10_000 }, writer('org_2'))
  expect(rateOf(writer('org_1'))).toBeCloseTo(10)
  expect(rateOf(writer('org_2'))).toBeCloseTo(5000)
})

test('an organization without a rate gets the mean of all, but no more than nine of ten calls had', () => {
  const { observe, rateOf } = open()
  const fresh = writer('org_new')
  observe(5, { outputTokens: 20 })
  observe(4, { outputTokens: 40 }, writer('org_2'))
  expect(rateOf(fresh)).toBe(50)
  observe(1, { outputTokens: 40 }, writer('org_2'))
  expect(rateOf(fresh)).toBeCloseTo(15)
  observe(80, { outputTokens: 20 })
  observe(10, { outputTokens: 10_000 }, writer('org_3'))
  // The mean is about 500 a second.
  expect(rateOf(fresh)).toBeLessThanOrEqual(20)
})

test('thousands of organizations are known, and those that called longest ago are forgotten', () => {
  const { observe, rateOf } = open()
  observe(20, { outputTokens: 400 }, writer('first'))
  for (let number = 0; number < 10_000; number++) {
    observe(1, { outputTokens: 20 }, writer(`org_${number}`))
  }
  expect(rateOf(writer('first'))).toBeCloseTo(10)
})
