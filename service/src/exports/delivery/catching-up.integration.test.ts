import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createSharedPace } from '#platform/background/run-task.ts'

import { caughtUp, openDelivery } from './testing/test-delivery.ts'

const share = 0.2

/** A worker whose work and rests are noted. */
function startNoting({ startWorker }: Awaited<ReturnType<typeof openDelivery>>) {
  const noted = { workedMs: 0, rests: 0 }
  const pace = createSharedPace({ share }, (workedMs) => {
    noted.workedMs += workedMs
  })
  const restAfter = (workedMs: number) => {
    noted.rests++
    return pace.restAfter(workedMs)
  }
  startWorker({ pace: { ...pace, restAfter } })
  return noted
}

test('sinks that are far behind catch up within their share of the time', async () => {
  const delivery = await openDelivery()
  const { createSink, write, numbersOf } = delivery
  await createSink('webhook')
  await createSink('elastic')
  await write(5000)
  const startedAtMs = performance.now()
  const noted = startNoting(delivery)
  // The sinks also get the events of their own creation.
  const least = () => Math.min(numbersOf('webhook').length, numbersOf('elastic').length)
  await expect.poll(least, { ...caughtUp, timeout: 60_000 }).toBeGreaterThanOrEqual(5000)
  const passedMs = performance.now() - startedAtMs
  expect(noted.rests).toBeGreaterThanOrEqual(8)
  // What was done last had no rest yet: the first batches of both sinks, and the last.
  const workPerRest = noted.workedMs / noted.rests
  expect(noted.workedMs).toBeLessThan(passedMs * share + 4 * workPerRest)
})

test('what has just happened is delivered without a rest', async () => {
  const delivery = await openDelivery()
  const { createSink, write, numbersOf } = delivery
  await createSink('webhook')
  const noted = startNoting(delivery)
  for (let round = 1; round <= 3; round++) {
    await write(20)
    await expect
      .poll(() => numbersOf('webhook').length, caughtUp)
      .toBeGreaterThanOrEqual(20 * round)
  }
  expect(noted.rests).toBe(0)
  expect(noted.workedMs).toBeGreaterThan(0)
})

test('large events are paced, too, although a batch has few of them', async () => {
  const delivery = await openDelivery()
  const { createSink, write, numbersOf } = delivery
  await createSink('webhook')
  await write(300, 'x'.repeat(8000))
  const noted = startNoting(delivery)
  await expect
    .poll(() => numbersOf('webhook').length, { ...caughtUp, timeout: 60_000 })
    .toBeGreaterThanOrEqual(300)
  // 2.4 MB at least, in batches of 1 MB. The last one has nothing after it.
  expect(noted.rests).toBeGreaterThanOrEqual(2)
})

test('a cursor that rests for long leaves its place to others, and comes back after the rest', async () => {
  const { api, createSink, write, numbersOf, startWorker } = await openDelivery()
  await createSink('webhook')
  await write(1500)
  startWorker({ pace: { note: () => undefined, restAfter: () => 20_000 } })
  await expect.poll(() => numbersOf('webhook').length, caughtUp).toBe(1000)
  const readRest = async () => {
    const { rows } = await sql<{ isLeased: boolean; restMs: number }>`
      select lease_owner is not null as "isLeased",
        1000 * extract(epoch from next_at - now())::float8 as "restMs"
      from export_cursor`.execute(api.db)
    return rows[0]
  }
  await expect.poll(readRest, caughtUp).toMatchObject({ isLeased: false })
  expect((await readRest())?.restMs).toBeGreaterThan(10_000)
  await sleep(1200)
  expect(numbersOf('webhook')).toHaveLength(1000)
  await sql`update export_cursor set next_at = now()`.execute(api.db)
  await expect.poll(() => numbersOf('webhook').length, caughtUp).toBeGreaterThanOrEqual(1500)
})
