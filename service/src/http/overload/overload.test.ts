import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'

import { Cancellation } from '#platform/calls/cancellation.ts'
import { createMetrics } from '#platform/metrics.ts'

import { createOverload } from './overload.ts'

beforeEach(() => {
  vi.useFakeTimers()
  return () => void vi.useRealTimers()
})

const notCancelled = new Cancellation()

function createProcess() {
  const metrics = createMetrics()
  const overload = createOverload(metrics)
  onTestFinished(overload.stop)
  /** Calls whose turn it is, with how long they waited for it. */
  const begun: { organizationId: string; waitedMs: number; admit: () => void }[] = []
  const counts = { begun: 0, refusedUnread: 0, refusedLate: 0 }
  let organizations = 0

  async function wait(organizationId: string) {
    const arrivedAtMs = performance.now()
    try {
      const { admit } = await overload.waitForTurn(organizationId, notCancelled)
      counts.begun++
      begun.push({ organizationId, admit, waitedMs: performance.now() - arrivedAtMs })
    } catch (error) {
      expect(error).toMatchObject({ code: 'overloaded', headers: { 'retry-after': '1' } })
      counts.refusedLate++
    }
  }
  function arriveOnce(organizationId: string) {
    try {
      overload.refuseInference()
      overload.refuseInference(organizationId)
    } catch (error) {
      expect(error).toMatchObject({ code: 'overloaded', headers: { 'retry-after': '1' } })
      counts.refusedUnread++
      return
    }
    void wait(organizationId)
  }
  return {
    overload,
    metrics,
    counts,
    begun,
    /** Calls of different organizations, or of one. */
    arrive(calls: number, organizationId?: string) {
      for (let call = 0; call < calls; call++) {
        arriveOnce(organizationId ?? `org_${++organizations}`)
      }
    },
    /** Ends the turns of some calls, oldest first. How long each of them had waited. */
    async admit(calls: number) {
      await vi.advanceTimersByTimeAsync(0)
      const ending = begun.splice(0, calls)
      for (const { admit } of ending) admit()
      await vi.advanceTimersByTimeAsync(0)
      return ending.map(({ waitedMs }) => waitedMs)
    },
  }
}

const capacity = 400
const ticksPerSecond = 50

/** Calls come at a multiple of the capacity; how long those that were admitted had waited. */
async function load(
  process: ReturnType<typeof createProcess>,
  times: number,
  seconds: number,
  organizationId?: string,
) {
  const waits: number[] = []
  for (let tick = 0; tick < seconds * ticksPerSecond; tick++) {
    process.arrive((capacity * times) / ticksPerSecond, organizationId)
    waits.push(...(await process.admit(capacity / ticksPerSecond)))
    await vi.advanceTimersByTimeAsync(1000 / ticksPerSecond)
  }
  return waits
}

test('a burst is taken as a whole', async () => {
  const process = createProcess()
  process.arrive(500)
  await load(process, 0, 2)
  expect(process.counts).toEqual({ begun: 500, refusedUnread: 0, refusedLate: 0 })
})

test('up to its capacity a process refuses no call', async () => {
  const process = createProcess()
  await load(process, 0.9, 10)
  expect(process.counts).toMatchObject({ refusedUnread: 0, refusedLate: 0 })
})

test.each([2, 3])(
  'at %d times the capacity, it is used up, and few wait for long',
  async (times) => {
    const process = createProcess()
    const waits = (await load(process, times, 20)).toSorted((left, right) => left - right)
    expect(waits.length / 20 / capacity).toBeGreaterThan(0.95)
    expect(waits.at(-1)).toBeLessThan(2000)
    expect(waits[Math.floor(waits.length * 0.8)]).toBeLessThan(400)
    // Of the first calls some had to wait in vain. Later calls are refused before they are read.
    expect(process.counts.refusedLate / process.counts.refusedUnread).toBeLessThan(0.2)
  },
)

test('when the load is gone, the next call is taken, and a burst soon after', async () => {
  const process = createProcess()
  await load(process, 3, 5)
  const { refusedLate, refusedUnread } = process.counts
  await load(process, 0, 0.5)
  process.arrive(10)
  await load(process, 0, 1)
  process.arrive(300)
  await load(process, 0, 1)
  expect(process.counts).toMatchObject({ refusedLate, refusedUnread })
  const printed = await process.metrics.registry.metrics()
  expect(printed).toContain(
    `gatehouse_requests_shed_total{kind="inference"} ${refusedLate + refusedUnread}`,
  )
})

test('calls that wait for a turn which never comes are refused', async () => {
  const process = createProcess()
  process.arrive(200)
  await vi.advanceTimersByTimeAsync(1900)
  expect(process.counts).toMatchObject({ begun: 32, refusedLate: 0 })
  await vi.advanceTimersByTimeAsync(200)
  expect(process.counts).toMatchObject({ begun: 32, refusedLate: 168 })
})

test('however many calls of four organizations are stuck, those of others get their turn', async () => {
  const process = createProcess()
  for (let second = 0; second < 5; second++) {
    for (const organization of ['a', 'b', 'c', 'd']) process.arrive(100, organization)
    await vi.advanceTimersByTimeAsync(0)
    const { begun } = process.counts
    process.arrive(4)
    await vi.advanceTimersByTimeAsync(0)
    expect(process.counts.begun).toBe(begun + 4)
    await vi.advanceTimersByTimeAsync(1000)
    for (const { admit } of process.begun.splice(-4)) admit()
  }
})

test('however many calls one organization sends when all turns are taken, others wait in a line of their own', async () => {
  const process = createProcess()
  process.arrive(32)
  process.arrive(500, 'burst')
  await vi.advanceTimersByTimeAsync(2100)
  expect(process.counts.refusedLate).toBeGreaterThan(400)
  const { refusedUnread } = process.counts
  process.arrive(10)
  expect(process.counts.refusedUnread).toBe(refusedUnread)
})

test('a caller who hangs up leaves the line', async () => {
  const process = createProcess()
  process.arrive(32)
  const hangUp = new Cancellation()
  const waiting = process.overload.waitForTurn('gone', hangUp)
  hangUp.cancel(new Error('hung up'))
  await expect(waiting).rejects.toThrow('hung up')
  process.arrive(1, 'next')
  await process.admit(1)
  expect(process.begun.at(-1)?.organizationId).toBe('next')
})

test('organizations get their turns in turn', async () => {
  const process = createProcess()
  process.arrive(32)
  process.arrive(3, 'first')
  process.arrive(1, 'second')
  await process.admit(4)
  const latest = process.begun.slice(-4).map(({ organizationId }) => organizationId)
  expect(latest).toEqual(['first', 'second', 'first', 'first'])
})

test('a turn ends once, admitted or not', async () => {
  const process = createProcess()
  for (let call = 0; call < 200; call++) {
    using turn = await process.overload.waitForTurn(`org_${call}`, notCancelled)
    if (call % 2 === 0) turn.admit()
  }
  // If turns had ended twice, more than these would begin.
  process.arrive(200)
  await vi.advanceTimersByTimeAsync(0)
  expect(process.counts.begun).toBe(32)
})
