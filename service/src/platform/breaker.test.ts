import { expect, test } from 'vitest'

import { createTestClock } from '#testing/test-gateway.ts'

import { createBreaker } from './breaker.ts'

function open() {
  const clock = createTestClock()
  const breaker = createBreaker({ now: clock.now, failuresMax: 3, pauseMs: 1000 })
  for (let failures = 0; failures < 3; failures++) breaker.failed()
  return { clock, breaker }
}

test('a few failures in a row open it, a success between them does not', () => {
  const { breaker } = open()
  expect(breaker.mayTry()).toBe(false)
  const healthy = createBreaker({ now: () => new Date(), failuresMax: 3, pauseMs: 1000 })
  for (let failures = 0; failures < 10; failures++) {
    healthy.failed()
    healthy.failed()
    healthy.succeeded()
  }
  expect(healthy.mayTry()).toBe(true)
})

test('after the pause one probe at a time is let through, and its success closes it', () => {
  const { clock, breaker } = open()
  clock.pass(999)
  expect(breaker.mayTry()).toBe(false)
  clock.pass(1)
  expect([breaker.mayTry(), breaker.mayTry()]).toEqual([true, false])
  breaker.succeeded()
  expect([breaker.mayTry(), breaker.mayTry()]).toEqual([true, true])
})

test('a probe that fails begins a new pause, and so does one that never reports its outcome', () => {
  const { clock, breaker } = open()
  clock.pass(1000)
  breaker.mayTry()
  breaker.failed()
  clock.pass(999)
  expect(breaker.mayTry()).toBe(false)
  clock.pass(1)
  expect(breaker.mayTry()).toBe(true)
  clock.pass(999)
  expect(breaker.mayTry()).toBe(false)
  clock.pass(1)
  expect(breaker.mayTry()).toBe(true)
})
