import { hash } from 'node:crypto'

import type { KyselyPlugin } from 'kysely'
import { expect, test } from 'vitest'

import { writeCanonicalRecord } from '#audit/canonical-record.ts'
import { insertEvents } from '#audit/event-store.ts'
import type { Event } from '#audit/event.ts'
import { hashLeaf } from '#audit/log/merkle.ts'
import { numberAllEvents } from '#audit/log/testing/number-all-events.ts'
import { largeEvent } from '#audit/testing/large-event.ts'
import { listEntries } from '#exports/log/entry-store.ts'

import { buildBatch } from './build-batch.ts'
import type { DeliveryLease } from './lease-store.ts'
import { caughtUp, openDelivery, type TestDelivery } from './testing/test-delivery.ts'

// Events of earlier releases may have half a megabyte each.

async function writeLarge({ api }: TestDelivery, sizes: readonly number[]): Promise<Event[]> {
  const written: Event[] = []
  for (const [at, bytes] of sizes.entries()) {
    const { organizationId } = api.organization
    const event = largeEvent(organizationId, bytes, new Date(Date.now() + at))
    await insertEvents(api.db, [event])
    written.push(event)
  }
  await numberAllEvents(api.db)
  return written
}

/** A database that counts the bytes of the payloads that are read from it. */
function countRead({ api }: TestDelivery) {
  let bytes = 0
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      for (const { payload } of result.rows) if (Buffer.isBuffer(payload)) bytes += payload.length
      return result
    },
  }
  return { db: api.db.withPlugin(plugin), bytesRead: () => bytes }
}

const leaseOf = ({ api }: TestDelivery, orgSeq: number): DeliveryLease => ({
  cursorId: '1',
  owner: 'x',
  isReplay: false,
  orgSeq,
  endSeq: null,
  signedSize: 0,
  day: '2026-01-01',
  plannedTo: null,
  batchMax: null,
  attempt: 0,
  sink: { organizationId: api.organization.organizationId } as DeliveryLease['sink'],
})

const bytesOf = (items: readonly { json: string }[]) =>
  items.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0)

test.each([
  ['of half a megabyte', Array.from({ length: 40 }, () => 500_000)],
  ['of 60 KB', Array.from({ length: 200 }, () => 60_000)],
  ['larger than a batch', Array.from({ length: 5 }, () => 1_500_000)],
  ['of all sizes', Array.from({ length: 120 }, (_, at) => [200, 5000, 90_000, 400_000][at % 4]!)],
])('what is read for a batch is hardly more than what is sent: events %s', async (_, sizes) => {
  const delivery = await openDelivery()
  const written = await writeLarge(delivery, sizes)
  const { db, bytesRead } = countRead(delivery)
  const rules = { limits: { itemsMax: 1000, bytesMax: 1_000_000 } }
  const sent: string[] = []
  let bytesSent = 0
  for (let lease = leaseOf(delivery, 0); ;) {
    const batch = await buildBatch(db, lease, rules)
    if (!batch) break
    const bytes = bytesOf(batch.items)
    if (batch.items.length > 1) expect(bytes).toBeLessThanOrEqual(rules.limits.bytesMax)
    sent.push(...batch.items.map(({ record }) => record.event_id))
    bytesSent += bytes
    // A retry sends the same.
    const again = await buildBatch(delivery.api.db, { ...lease, plannedTo: batch.to }, rules)
    expect(again?.items.map(({ json }) => json)).toEqual(batch.items.map(({ json }) => json))
    lease = { ...lease, orgSeq: batch.to, day: batch.day }
  }
  const ids = written.map(({ id }) => id)
  expect(sent.filter((id) => ids.includes(id))).toEqual(ids)
  expect(bytesRead() / bytesSent).toBeLessThan(1.25)
})

test('large events of earlier releases are delivered, and prove what they did before', async () => {
  const delivery = await openDelivery()
  const { api, createSink, doubles, idsOf, readSink, startWorker } = delivery
  const sinks = [await createSink('webhook'), await createSink('s3')]
  const written = await writeLarge(delivery, [500_000, 1000, 500_000, 2_000_000, 1000])
  startWorker()
  for (const id of sinks) {
    await expect
      .poll(() => readSink(id), caughtUp)
      .toMatchObject({ pending_events: 0, dead_letters: 0, state: 'ok' })
  }
  const ids = written.map(({ id }) => id)
  for (const type of ['webhook', 's3'] as const) {
    expect(idsOf(type).filter((id) => ids.includes(String(id)))).toEqual(ids)
  }
  const { rows } = await listEntries(api.db, api.organization.organizationId, {
    after: 0,
    limit: 1000,
    bytesMax: 100_000_000,
  })
  const leafOf = new Map(rows.map(({ event }) => [event?.id, event?.leaf.toString('hex')]))
  for (const record of doubles.webhook.double.received) {
    const { payload, payload_salt, payload_hash, org_seq } = record as Record<string, string>
    const salted = [Buffer.from(payload_salt!, 'hex'), Buffer.from(JSON.stringify(payload))]
    expect(hash('sha256', Buffer.concat(salted))).toBe(payload_hash)
    const event = written.find(({ id }) => id === record['event_id'])
    if (!event) continue
    const leaf = hashLeaf(writeCanonicalRecord(event, Number(org_seq)))
    expect(leaf.toString('hex')).toBe(leafOf.get(event.id))
  }
})
