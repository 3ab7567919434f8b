import { expect, test } from 'vitest'

import { createTestClock } from '#testing/test-gateway.ts'

import { createFreeRequestMemory } from './free-request-memory.ts'

const identity = (number: number) => Buffer.alloc(32, number.toString(16).padStart(8, '0'), 'hex')

test('a status is cached for five seconds, or until the request is given back', () => {
  const clock = createTestClock()
  const memory = createFreeRequestMemory({ now: clock.now, steadyNow: clock.now })
  memory.note(identity(1), 'used')
  memory.note(identity(2), 'unspent')
  clock.pass(4999)
  expect([1, 2, 3].map((each) => memory.get(identity(each)))).toEqual([
    'used',
    'unspent',
    undefined,
  ])
  memory.forget(identity(1))
  expect(memory.get(identity(1))).toBeUndefined()
  clock.pass(1)
  expect(memory.get(identity(2))).toBeUndefined()
})

test('no status is cached beyond midnight UTC, when the budget starts again', () => {
  const clock = createTestClock()
  const memory = createFreeRequestMemory({ now: clock.now, steadyNow: clock.now })
  clock.pass(12 * 60 * 60 * 1000 - 1000)
  memory.note(identity(1), 'budget_spent')
  clock.pass(999)
  expect(memory.get(identity(1))).toBe('budget_spent')
  clock.pass(1)
  expect(memory.get(identity(1))).toBeUndefined()
})

test('beyond ten thousand entries the oldest is dropped', () => {
  const { now } = createTestClock()
  const memory = createFreeRequestMemory({ now, steadyNow: now })
  for (let each = 0; each <= 10_000; each++) memory.note(identity(each), 'used')
  expect(memory.get(identity(0))).toBeUndefined()
  expect(memory.get(identity(1))).toBe('used')
  expect(memory.get(identity(10_000))).toBe('used')
})
