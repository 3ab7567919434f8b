import { createExport, retrieveExport } from '@gatehouse/contract/exports/export-sink'
import { type AllDoubles, startAllDoubles } from '@gatehouse/tools/destinations/all-doubles'
import { sql } from 'kysely'
import { beforeEach, expect, onTestFinished, test } from 'vitest'

import { writeCanonicalRecord } from '#audit/canonical-record.ts'
import { insertEvents } from '#audit/event-store.ts'
import { buildRevisionEvent, type Event, operator } from '#audit/event.ts'
import { appendLeaves, emptyTree, hashLeaf, rootOf } from '#audit/log/merkle.ts'
import { proveInclusion } from '#audit/log/prove-inclusion.ts'
import { numberAllEvents } from '#audit/log/testing/number-all-events.ts'
import { rootByProof } from '#audit/log/testing/root-by-proof.ts'
import { keepPartitions } from '#audit/partitions/keep-partitions.ts'
import { createDestinations } from '#exports/destinations/destinations.ts'
import { listEntries } from '#exports/log/entry-store.ts'
import { addDeadLetters } from '#exports/sinks/dead-letter-store.ts'
import { createSharedPace } from '#platform/background/run-task.ts'
import { createTenantEgress } from '#platform/egress.ts'
import { transact } from '#platform/transaction.ts'
import { silentLog } from '#testing/silent-log.ts'
import { createTestApi } from '#testing/test-api.ts'

import { announceGaps } from './announce-gaps.ts'
import { deliverEvents } from './deliver-events.ts'

// What a sink gets of events that are gone before it could get them: of those that were dropped a gap, of those whose payload was
// erased everything else.

const dayMs = 24 * 60 * 60 * 1000

let doubles: AllDoubles
let api: Awaited<ReturnType<typeof createTestApi>>
let sinkId: string

beforeEach(async () => {
  doubles = await startAllDoubles()
  onTestFinished(() => doubles[Symbol.asyncDispose]())
  api = await createTestApi({ environment: { EXPORT_PRIVATE_TARGETS: doubles.targets.join(',') } })
  const { body } = await api.send(createExport, {
    body: { type: 'webhook', config: doubles.webhook.config },
  })
  sinkId = (body as unknown as { export: { id: string } }).export.id
  await numberAllEvents(api.db)
})

async function write(count: number, at: Date): Promise<Event[]> {
  const { organizationId } = api.organization
  const change = { organizationId, by: operator, action: 'created', before: null } as const
  const events = Array.from({ length: count }, (_, index) =>
    buildRevisionEvent({ ...change, after: { id: `x${index}`, object: 'thing' } }, at),
  )
  await insertEvents(api.db, events)
  await numberAllEvents(api.db)
  return events
}

/** Delivers until the sink has everything. */
async function deliverAll() {
  const egress = createTenantEgress({ privateTargets: doubles.targets, ca: [doubles.ca] })
  const stopping = new AbortController()
  const { db, now, log, metrics, mutations } = api.house
  const running = deliverEvents(
    {
      db,
      now,
      log,
      metrics,
      secretBox: mutations.secretBox,
      pace: createSharedPace({ share: 0.5 }),
      destinations: createDestinations({ azureLoginUrl: doubles.azureLoginUrl, s3PatienceMs: 0 }),
      request: (address, call) =>
        egress.request(address, { answerLimitBytes: 65_536, ...call, deadlineMs: 3000 }),
    },
    stopping.signal,
  )
  const readSink = async () =>
    (await api.send(retrieveExport, { params: { export_id: sinkId } })).body
  await expect
    .poll(readSink, { timeout: 20_000, interval: 100 })
    .toMatchObject({ export: { pending_events: 0, state: 'ok' } })
  stopping.abort()
  await running
  await egress.close()
  return doubles.webhook.double.received
}

async function dropOldDay() {
  const dropped: unknown[] = []
  await keepPartitions({
    db: api.db,
    log: { ...silentLog, event: (_, fields) => void dropped.push(fields) },
    retentionDays: 30,
    beforeDrop: (tx, days) => announceGaps(tx, days, new Date()),
  })
  expect(dropped).toHaveLength(1)
  await numberAllEvents(api.db)
}

test('a sink that has not got the events of a day that is dropped gets a gap in their place, and goes on', async () => {
  const { db } = api
  const old = new Date(Date.now() - 40 * dayMs)
  await sql`select make_event_partition(${old}::date)`.execute(db)
  const dropped = await write(5, old)
  const kept = await write(3, new Date())
  const { rows } = await sql<{ first: number }>`
    select min(org_seq)::integer as first from audit_log where event_id = any(${dropped.map(({ id }) => id)}::uuid[])`.execute(
    db,
  )
  const first = rows[0]!.first
  await dropOldDay()
  const received = await deliverAll()
  const ids = received.map((record) => record['event_id'])
  expect(ids).toEqual(expect.arrayContaining(kept.map(({ id }) => id)))
  for (const { id } of dropped) expect(ids).not.toContain(id)
  expect(received.at(-1)).toMatchObject({
    event_type: 'revision',
    action: 'gap',
    object_id: sinkId,
    cause: 'not_sent',
    from_seq: first,
    to_seq: first + 4,
    events: 5,
    org_seq: first + 8,
  })
  // The leaves are still there: nothing else has taken the numbers.
  const { rows: entries } = await listEntries(db, api.organization.organizationId, {
    after: first - 1,
    limit: 9,
  })
  expect(entries.map(({ event }) => event === null)).toEqual([
    ...Array<boolean>(5).fill(true),
    ...Array<boolean>(4).fill(false),
  ])
})

test('a sink that has got everything gets no gap', async () => {
  const old = new Date(Date.now() - 40 * dayMs)
  await sql`select make_event_partition(${old}::date)`.execute(api.db)
  const events = await write(5, old)
  await deliverAll()
  await dropOldDay()
  const received = await deliverAll()
  expect(received.filter((record) => record['action'] === 'gap')).toEqual([])
  expect(received.map((record) => record['event_id'])).toEqual(
    expect.arrayContaining(events.map(({ id }) => id)),
  )
})

test('events that a sink has refused are a gap when they are dropped', async () => {
  const { db } = api
  const old = new Date(Date.now() - 40 * dayMs)
  await sql`select make_event_partition(${old}::date)`.execute(db)
  const events = await write(5, old)
  const received = await deliverAll()
  const letters = [events[1]!, events[3]!].map(({ id }) => ({
    eventId: id,
    eventDay: old.toISOString().slice(0, 10),
    orgSeq: received.find((record) => record['event_id'] === id)!['org_seq'] as number,
    error: 'Too large.',
  }))
  await transact(db, (tx) => addDeadLetters(tx, sinkId, letters))
  await dropOldDay()
  const gap = (await deliverAll()).at(-1)
  const numbers = letters.map(({ orgSeq }) => orgSeq)
  const range = { from_seq: Math.min(...numbers), to_seq: Math.max(...numbers) }
  expect(gap).toMatchObject({ action: 'gap', cause: 'refused', ...range, events: 2 })
  expect((await sql`select from export_dead_letter`.execute(db)).rows).toEqual([])
})

test('a replay that has not sent everything of a day that is dropped gets a gap', async () => {
  const { db } = api
  const old = new Date(Date.now() - 40 * dayMs)
  await sql`select make_event_partition(${old}::date)`.execute(db)
  await write(5, old)
  await deliverAll()
  await sql`
    insert into export_cursor (sink_id, organization_id, is_replay, org_seq, end_seq, signed_size, day, next_at)
    select sink_id, organization_id, true, org_seq - 3, org_seq - 1, 0, day, now() + interval '1 day'
    from export_cursor`.execute(db)
  await dropOldDay()
  const gaps = (await deliverAll()).filter((record) => record['action'] === 'gap')
  expect(gaps).toMatchObject([{ cause: 'not_replayed', events: 2 }])
})

test('a batch that was planned before its entries were dropped does not stop the sink', async () => {
  const { db } = api
  await write(5, new Date())
  await transact(db, async (tx) => {
    await sql`
      update export_cursor set planned_to = (select max(org_seq) from audit_log)
      where sink_id = ${sinkId}`.execute(tx)
    await sql`set local session_replication_role = replica`.execute(tx)
    await sql`
      delete from audit_log where org_seq > (select org_seq from export_cursor where sink_id = ${sinkId})`.execute(
      tx,
    )
  })
  const kept = await write(3, new Date())
  const ids = (await deliverAll()).map((record) => record['event_id'])
  expect(ids).toEqual(expect.arrayContaining(kept.map(({ id }) => id)))
})

test('an event whose payload was erased keeps its leaf, can be proven, and is delivered without the payload', async () => {
  const { db } = api
  const { organizationId } = api.organization
  const [erased] = await write(3, new Date())
  await sql`update event set payload = null, salt = null where id = ${erased!.id}`.execute(db)
  const { rows: entries } = await listEntries(db, organizationId, { after: 0, limit: 100 })
  const leaves = entries.map(({ event }) => event!.leaf)
  const { event } = entries.find((entry) => entry.event?.id === erased!.id)!
  expect(event).toMatchObject({ payload: null, salt: null })
  expect(hashLeaf(writeCanonicalRecord(event as never, event!.orgSeq))).toEqual(event!.leaf)
  const size = leaves.length
  const hashes = await proveInclusion(db, organizationId, event!.orgSeq, { size, tiledSize: 0 })
  expect(rootByProof(event!.leaf, event!.orgSeq, size, hashes)).toEqual(
    rootOf(appendLeaves(emptyTree, leaves).frontier),
  )
  const received = await deliverAll()
  expect(received.find((record) => record['event_id'] === erased!.id)).toMatchObject({
    payload: null,
    payload_salt: null,
    payload_hash: erased!.payloadHash.toString('hex'),
    org_seq: event!.orgSeq,
  })
})
