import { expect, test } from 'vitest'

import { createTestClock } from '#testing/test-gateway.ts'

import { createLatelySpent } from './lately-spent.ts'

const identity = (number: number) => Buffer.alloc(32, number.toString(16).padStart(8, '0'), 'hex')

test('it is believed for five seconds, unless the request was given back', () => {
  const clock = createTestClock()
  const spent = createLatelySpent(clock)
  spent.note(identity(1), 'used')
  spent.note(identity(2), 'budget_spent')
  clock.pass(4999)
  expect([1, 2, 3].map((each) => spent.of(identity(each)))).toEqual(['used', 'budget_spent', null])
  spent.forget(identity(1))
  expect(spent.of(identity(1))).toBeNull()
  clock.pass(1)
  expect(spent.of(identity(2))).toBeNull()
})

test('it does not grow beyond ten thousand: the oldest is forgotten', () => {
  const spent = createLatelySpent(createTestClock())
  for (let each = 0; each <= 10_000; each++) spent.note(identity(each), 'used')
  expect(spent.of(identity(0))).toBeNull()
  expect(spent.of(identity(1))).toBe('used')
  expect(spent.of(identity(10_000))).toBe('used')
})
