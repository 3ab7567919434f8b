import { expect, test } from 'vitest'

import { createTestClock } from '#testing/test-gateway.ts'

import { createFreeStandings } from './free-standing.ts'

const identity = (number: number) => Buffer.alloc(32, number.toString(16).padStart(8, '0'), 'hex')

test('it is believed for five seconds, unless the request was given back', () => {
  const clock = createTestClock()
  const standings = createFreeStandings(clock)
  standings.note(identity(1), 'used')
  standings.note(identity(2), 'unspent')
  clock.pass(4999)
  expect([1, 2, 3].map((each) => standings.of(identity(each)))).toEqual([
    ...['used', 'unspent', undefined],
  ])
  standings.forget(identity(1))
  expect(standings.of(identity(1))).toBeUndefined()
  clock.pass(1)
  expect(standings.of(identity(2))).toBeUndefined()
})

test('nothing is believed beyond midnight UTC: there are new ones then', () => {
  const clock = createTestClock()
  const standings = createFreeStandings(clock)
  clock.pass(12 * 60 * 60 * 1000 - 1000)
  standings.note(identity(1), 'budget_spent')
  clock.pass(999)
  expect(standings.of(identity(1))).toBe('budget_spent')
  clock.pass(1)
  expect(standings.of(identity(1))).toBeUndefined()
})

test('it does not grow beyond ten thousand: the oldest is forgotten', () => {
  const standings = createFreeStandings(createTestClock())
  for (let each = 0; each <= 10_000; each++) standings.note(identity(each), 'used')
  expect(standings.of(identity(0))).toBeUndefined()
  expect(standings.of(identity(1))).toBe('used')
  expect(standings.of(identity(10_000))).toBe('used')
})
