import { expect, test } from 'vitest'

import { budgetTableOf } from './budget-table.ts'

test('a figure above its goal misses it; what was not measured is not shown', () => {
  const table = budgetTableOf({ plainCpu: { value: 3.4 }, streamCpu: { value: 3.6, median: 4 } })
  expect(table).toContain(
    '| CPU of a plain call ÷ bare proxy    | at most 3.5 (aim 3) | 3.40     |        | holds  |',
  )
  expect(table).toContain(
    '| CPU of a streamed call ÷ bare proxy | at most 3.5 (aim 3) | 3.60     | 4.00   | MISSES |',
  )
  expect(table).not.toContain('Redis')
})

test('a goal with two ways to reach it holds when one of them does', () => {
  expect(budgetTableOf({ plainP99: { value: 20, holds: true } })).toMatch(/20\.00 ms .* holds/)
  expect(budgetTableOf({ plainP99: { value: 20, holds: false } })).toMatch(/20\.00 ms .* MISSES/)
})

test('what was not a number has not reached its goal', () => {
  expect(budgetTableOf({ plainWorker: { value: NaN } })).toMatch(/NaN .* MISSES/)
})

test('a figure of a disturbed run says so', () => {
  expect(budgetTableOf({ plainCpu: { value: 3, isNoisy: true } })).toMatch(/ holds, noisy \|$/)
})

test('a goal may also be a least: too little goodput misses it', () => {
  expect(budgetTableOf({ overloadGoodput: { value: 84 } })).toMatch(/at least 85 % .* MISSES/)
  expect(budgetTableOf({ overloadGoodput: { value: 85 } })).toMatch(/at least 85 % .* holds/)
})
