import { expect, onTestFinished, test } from 'vitest'

import { createMetrics } from '#platform/metrics.ts'

import { createOverload } from './overload.ts'

function createProcess() {
  let nowMs = 0
  const metrics = createMetrics()
  const overload = createOverload(metrics, () => nowMs)
  onTestFinished(overload.stop)
  const waiting: (() => void)[] = []
  /** True if the call was taken. */
  function arrive(organizationId: string): boolean {
    try {
      overload.refuse('inference')
    } catch (error) {
      expect(error).toMatchObject({ code: 'overloaded', headers: { 'retry-after': '1' } })
      return false
    }
    waiting.push(overload.wait(organizationId).admit)
    return true
  }
  let organizations = 0
  return {
    overload,
    pass: (ms: number) => void (nowMs += ms),
    /** Calls of different organizations, or of one; how many of them are taken. */
    arrive: (calls: number, organizationId?: string) =>
      Array.from({ length: calls }, () =>
        arrive(organizationId ?? `org_${++organizations}`),
      ).filter(Boolean).length,
    admit: (calls: number) => {
      for (const leave of waiting.splice(0, calls)) leave()
    },
    waiting: () => waiting.length,
    metrics,
  }
}

test('a burst is taken as a whole, and calls that are admitted at once are never refused', () => {
  const { arrive, admit, pass } = createProcess()
  expect(arrive(1000)).toBe(1000)
  admit(1000)
  for (let second = 0; second < 5; second++) {
    expect(arrive(1000)).toBe(1000)
    admit(1000)
    pass(1000)
  }
})

test('at three times the capacity, about as many are taken as are admitted, and few wait', () => {
  const { arrive, admit, pass, waiting } = createProcess()
  const capacity = 400
  let taken = 0
  let longest = 0
  const ticks = 500
  for (let tick = 0; tick < ticks; tick++) {
    taken += arrive((capacity * 3) / 50)
    admit(capacity / 50)
    if (tick > 350) longest = Math.max(longest, waiting())
    pass(20)
  }
  expect(taken / (ticks / 50) / capacity).toBeGreaterThan(0.95)
  // What was taken for a burst at the beginning is long done.
  expect(longest / capacity).toBeLessThan(0.75)
})

test('when the load is gone, the next call is taken, and the next burst soon after', async () => {
  const { arrive, admit, pass, metrics } = createProcess()
  arrive(500)
  pass(100)
  expect(arrive(10)).toBe(10)
  pass(2100)
  expect(arrive(10)).toBe(0)
  admit(510)
  expect(arrive(10)).toBe(10)
  admit(10)
  pass(1100)
  expect(arrive(300)).toBe(300)
  const printed = await metrics.registry.metrics()
  expect(printed).toContain('gatehouse_requests_shed_total{kind="inference"} 10')
})

test('however many calls of three organizations wait, those of others are taken', () => {
  const { arrive, pass } = createProcess()
  for (let second = 0; second < 5; second++) {
    for (const organization of ['a', 'b', 'c']) expect(arrive(100, organization)).toBe(100)
    pass(1000)
  }
  expect(arrive(1)).toBe(1)
})

test('a call leaves once, admitted or not', () => {
  const { overload, arrive, pass } = createProcess()
  for (let call = 0; call < 200; call++) {
    using waiting = overload.wait(`org_${call}`)
    if (call % 2 === 0) waiting.admit()
  }
  pass(2000)
  // If calls had left twice, the count would be far below zero, and these would not be too many.
  expect(arrive(51)).toBe(51)
  pass(2100)
  expect(arrive(1)).toBe(0)
})
