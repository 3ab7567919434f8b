import { expect, onTestFinished, test } from 'vitest'

import { createMetrics } from '#platform/metrics.ts'

import { createOverload } from './overload.ts'

function createProcess() {
  let nowMs = 0
  const metrics = createMetrics()
  const overload = createOverload(metrics, () => nowMs)
  onTestFinished(overload.stop)
  const waiting: (() => void)[] = []
  /** True if the call was admitted. */
  function arrive(): boolean {
    try {
      const { leave } = overload.enter()
      waiting.push(() => leave(true))
      return true
    } catch (error) {
      expect(error).toMatchObject({ code: 'overloaded', headers: { 'retry-after': '1' } })
      return false
    }
  }
  return {
    pass: (ms: number) => void (nowMs += ms),
    arrive: (calls: number) => Array.from({ length: calls }, arrive).filter(Boolean).length,
    send: (calls: number) => {
      for (const leave of waiting.splice(0, calls)) leave()
    },
    waiting: () => waiting.length,
    metrics,
  }
}

test('a burst is admitted as a whole, and calls that are sent at once are never refused', () => {
  const { arrive, send, pass } = createProcess()
  expect(arrive(1000)).toBe(1000)
  send(1000)
  for (let second = 0; second < 5; second++) {
    expect(arrive(1000)).toBe(1000)
    send(1000)
    pass(1000)
  }
})

test('at three times the capacity, about as many are admitted as are sent, and few wait', () => {
  const { arrive, send, pass, waiting } = createProcess()
  const capacity = 400
  let admitted = 0
  let longest = 0
  const ticks = 500
  for (let tick = 0; tick < ticks; tick++) {
    admitted += arrive((capacity * 3) / 50)
    send(capacity / 50)
    if (tick > 100) longest = Math.max(longest, waiting())
    pass(20)
  }
  expect(admitted / (ticks / 50) / capacity).toBeGreaterThan(0.95)
  // A quarter of a second's worth, and what was taken for a burst at the beginning.
  expect(longest / capacity).toBeLessThan(0.75)
})

test('when the load is gone, the next call is admitted, and the next burst soon after', async () => {
  const { arrive, send, pass, metrics } = createProcess()
  arrive(500)
  pass(600)
  expect(arrive(10)).toBe(0)
  send(500)
  expect(arrive(10)).toBe(10)
  send(10)
  pass(1100)
  expect(arrive(300)).toBe(300)
  expect(await metrics.registry.metrics()).toContain(
    'gatehouse_requests_shed_total{kind="inference"} 10',
  )
})

test('a call leaves once, however often it says so', () => {
  const overload = createOverload(createMetrics(), () => 0)
  onTestFinished(overload.stop)
  const calls = Array.from({ length: 60 }, () => overload.enter())
  for (const { leave } of calls) {
    leave(true)
    leave(false)
  }
  expect(() => overload.enter()).not.toThrow()
})
