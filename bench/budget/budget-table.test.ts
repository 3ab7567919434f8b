import { expect, test } from 'vitest'

import { budgetTableOf } from './budget-table.ts'

test('a figure above its goal misses it; what was not measured is not shown', () => {
  const table = budgetTableOf({ plainCpu: { value: 3.4 }, streamCpu: { value: 3.6 } })
  expect(table).toMatch(/^CPU of a plain call .* 3\.5 \(aim 3\) +3\.40 .* holds$/m)
  expect(table).toMatch(/^CPU of a streamed call .* 3\.60 .* MISSES$/m)
  expect(table).not.toContain('Redis')
})

test('a goal with two ways to reach it holds when one of them does', () => {
  expect(budgetTableOf({ plainP99: { value: 20, holds: true } })).toMatch(/20\.00 +ms +holds/)
  expect(budgetTableOf({ plainP99: { value: 20, holds: false } })).toMatch(/20\.00 +ms +MISSES/)
})
