import { expect, test } from 'vitest'

import { judge } from './guards.ts'
import type { Counts, Measured } from './measure-counts.ts'

const within: Counts = {
  statements: 2,
  commits: 2,
  commands: 2,
  socketWrites: 1,
  blockingLogWrites: 0,
  logWrites: 1,
  promises: 10,
  heapBytes: 1000,
}
const judged = (
  one: Partial<Counts>,
  many: Partial<Counts> = {},
  cpu: Partial<Measured['cpu']> = {},
) => {
  const loads = { one: { ...within, ...one }, many: { ...within, statements: 0.2, ...many } }
  const counts = { plain: loads, stream: loads }
  const verdicts = judge({ counts, details: [], cpu: { plain: 1, stream: 1, ...cpu } })
  return verdicts.filter(({ holds }) => !holds).map(({ what }) => what)
}

test('what is within the guards passes', () => {
  expect(judged({})).toEqual([])
  expect(judged({ statements: 2.02, commands: 1.99 })).toEqual([])
})

test('one statement more for every tenth call is found, and so is one too few', () => {
  const found = ['plain, one at a time: SQL statements', 'stream, one at a time: SQL statements']
  expect(judged({ statements: 2.1 })).toEqual(found)
  expect(judged({ statements: 1.9 })).toEqual(found)
})

test('a second write to the caller and a write to the log that blocks are found', () => {
  expect(judged({ socketWrites: 2 })).toEqual(['plain, one at a time: writes to the caller'])
  expect(judged({ blockingLogWrites: 1 }, { blockingLogWrites: 1 })).toHaveLength(4)
})

test('many at once, statements may exceed their goal by 30 percent only', () => {
  expect(judged({}, { statements: 0.38 })).toEqual([])
  expect(judged({}, { statements: 0.4 })).toHaveLength(2)
})

test('promises and garbage of a call may be 15 percent more than measured, its CPU time 40', () => {
  expect(judged({}, { promises: 330, heapBytes: 315_000 })).toEqual([])
  expect(judged({}, { promises: 335 })).toEqual(['plain, 64 in flight: promises'])
  expect(judged({}, { heapBytes: 325_000 })).toEqual(['plain, 64 in flight: heap bytes'])
  expect(judged({}, {}, { plain: 8.6, stream: 6.8 })).toEqual([])
  expect(judged({}, {}, { stream: 6.9 })).toEqual(['stream, 64 in flight: CPU time ÷ bare proxy'])
})
