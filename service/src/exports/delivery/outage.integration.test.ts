import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { createDestinations } from '#exports/destinations/destinations.ts'
import { sinkCalls } from '#exports/sinks/testing/sink-calls.ts'
import { connectDatabase } from '#platform/database.ts'
import { startFaultProxy } from '#testing/fault-proxy.ts'

import { findPendingDigest } from './digest-store.ts'
import { leaseCursors } from './lease-store.ts'
import { caughtUp, openDelivery } from './testing/test-delivery.ts'

test('while the database is away the lanes wait, and afterwards they go on by themselves', async () => {
  const { api, logged, createSink, write, startWorker, readSink, numbersOf } = await openDelivery()
  const url = new URL(api.house.config.DATABASE_URL)
  const proxy = await startFaultProxy({ port: Number(url.port || 5432), seed: 1 })
  url.port = new URL(proxy.url).port
  const db = connectDatabase({ url: url.href, poolSize: 4 })
  const id = await createSink('splunk_hec')
  const worker = startWorker({ db })
  onTestFinished(async () => {
    await worker.stop()
    await db.destroy()
    await proxy[Symbol.asyncDispose]()
  })
  await write(10)
  await expect.poll(() => readSink(id), caughtUp).toMatchObject({ pending_events: 0 })
  logged.length = 0
  proxy.set({ reset: 1 })
  const before = proxy.met.connections
  await write(10)
  await sleep(4000)
  // Two lanes that try twice a second.
  expect(proxy.met.connections - before).toBeLessThan(40)
  expect(logged.filter((line) => line.includes('export_delivery_failed'))).toHaveLength(1)
  proxy.set()
  // A lease whose answer was lost has no owner until it ends, which takes 30 s.
  await sql`update export_cursor set lease_until = now() where lease_until is not null`.execute(
    api.db,
  )
  await expect.poll(() => readSink(id), caughtUp).toMatchObject({ pending_events: 0 })
  const numbers = numbersOf('splunk_hec')
  expect(new Set(numbers).size).toBe(Math.max(...numbers) - Math.min(...numbers) + 1)
})

test('a batch that waits for more is sent when its time is over, also if no event comes', async () => {
  const { doubles, createSink, write, startWorker, readSink, idsOf } = await openDelivery()
  const { azureLoginUrl } = doubles
  // The event of the new sink is the oldest of the batch: the wait begins with it.
  const createdMs = Date.now()
  const id = await createSink('s3')
  const s3PatienceMs = 2500
  startWorker({ destinations: createDestinations({ azureLoginUrl, s3PatienceMs }) })
  const [event] = await write(1)
  await expect.poll(() => idsOf('s3'), caughtUp).toContain(event!.id)
  expect(Date.now() - createdMs).toBeGreaterThanOrEqual(s3PatienceMs)
  await expect.poll(() => readSink(id), caughtUp).toMatchObject({ pending_events: 0 })
})

test('a clock that is far behind does not keep a batch back', async () => {
  const { doubles, createSink, write, startWorker, idsOf } = await openDelivery()
  const { azureLoginUrl } = doubles
  await createSink('s3')
  const s3PatienceMs = 60_000
  const now = () => new Date(Date.now() - 10 * 60_000)
  const destinations = createDestinations({ azureLoginUrl, s3PatienceMs })
  // Only the wait is by this clock; S3 refuses signatures of another time.
  const s3 = { ...destinations.s3 }
  s3.send = (config, batch, deps) =>
    destinations.s3.send(config, batch, { ...deps, now: () => new Date() })
  startWorker({ now, destinations: { ...destinations, s3 } })
  const [event] = await write(1)
  await expect.poll(() => idsOf('s3'), caughtUp).toContain(event!.id)
})

test('a digest is due when its hour is over in UTC, wherever the database is', async () => {
  const { api, createSink } = await openDelivery()
  const id = await createSink('s3')
  await sql`update export_cursor set org_seq = 1000000, signed_size = 1000000`.execute(api.db)
  // Whatever the minute, one of these zones has begun another hour since the object was stored.
  const addObject = (age: string) =>
    sql`insert into export_object values (${id}, ${age}, 'x', 1, 1, 1, greatest(now() - ${age}::interval,
      date_trunc('hour', now(), 'UTC')))`.execute(api.db)
  await addObject('40 minutes')
  for (const zone of ['UTC', 'Asia/Kolkata', 'Asia/Kathmandu', 'Australia/Eucla']) {
    await api.db.connection().execute(async (db) => {
      await sql`select set_config('timezone', ${zone}, false)`.execute(db)
      const wanted = { isFailing: false, limit: 9, perOrganization: 9 }
      expect([zone, await leaseCursors(db, wanted)]).toEqual([zone, []])
      await sql`reset timezone`.execute(db)
    })
  }
  expect(await findPendingDigest(api.db, id)).toBeUndefined()
  await sql`update export_object set at = at - interval '1 hour'`.execute(api.db)
  expect(await findPendingDigest(api.db, id)).toMatchObject({ objects: [{ key: '40 minutes' }] })
  // In another place there are no such objects.
  const { edit } = sinkCalls(api)
  await edit(id, { label: 'Same place' })
  expect(await findPendingDigest(api.db, id)).toBeDefined()
  expect((await edit(id, { config: { prefix: 'elsewhere/' } })).status).toBe(200)
  expect(await findPendingDigest(api.db, id)).toBeUndefined()
})
