import { expect, test } from 'vitest'

import { averagePrecision, recallAt, rocArea } from './metrics.ts'

const scored = (text: string) =>
  text.split(' ').map((each) => ({ score: Number(each.slice(1)), isPositive: each[0] === '+' }))

test('a perfect order has areas of 1, the reverse has the worst', () => {
  expect(averagePrecision(scored('+9 +8 -2 -1'))).toBe(1)
  expect(rocArea(scored('+9 +8 -2 -1'))).toBe(1)
  expect(rocArea(scored('-9 -8 +2 +1'))).toBe(0)
  expect(averagePrecision(scored('-9 -8 +2 +1'))).toBeCloseTo((1 / 3 + 2 / 4) / 2)
})

test('texts of equal scores are worth the same in any order', () => {
  for (const order of ['+5 -5 -5 -5', '-5 -5 -5 +5']) {
    expect(averagePrecision(scored(order))).toBe(0.25)
    expect(rocArea(scored(order))).toBe(0.5)
    expect(recallAt(0.5, scored(order))).toBe(0)
  }
})

test('recall counts what is found before too many negatives are', () => {
  expect(recallAt(0.5, scored('+9 -8 +7 -6 +5'))).toBe(2 / 3)
  expect(recallAt(0, scored('+9 -8 +7 -6 +5'))).toBe(1 / 3)
})
