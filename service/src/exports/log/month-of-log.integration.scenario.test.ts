import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { findShardsWithNews, numberingSettings, shards } from '#audit/log/log-store.ts'
import { announceGaps } from '#exports/delivery/announce-gaps.ts'
import { leaseCursors } from '#exports/delivery/lease-store.ts'
import type { Db } from '#platform/database.ts'
import { transact, transactNamed } from '#platform/transaction.ts'
import { openSeeded } from '#testing/plans.ts'

import { listEntries } from './entry-store.ts'

// A month of days, each with a partition of events and one of the audit log, and thousands of sinks: what the worker asks again and
// again is answered by keys. Times are printed beside that of a bare query by key.

let seeded: Awaited<ReturnType<typeof openSeeded>>
let db: Db
beforeAll(async () => {
  seeded = await openSeeded('month-of-events.sql', 'month-of-log.sql')
  db = seeded.db
}, 120_000)
afterAll(() => seeded[Symbol.asyncDispose]())

async function medianMs(work: () => Promise<unknown>, rounds = 20) {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const startedMs = performance.now()
    await work()
    times.push(performance.now() - startedMs)
  }
  return times.toSorted((one, other) => one - other)[Math.floor(rounds / 2)]!
}

async function printTime(name: string, work: () => Promise<unknown>, rounds?: number) {
  const bareMs = await medianMs(() =>
    sql`select leaf from audit_log where organization_id = 'org_0' and org_seq = 40000 and day = '2026-01-17'`.execute(
      db,
    ),
  )
  const workMs = await medianMs(work, rounds)
  console.log(`${name}: ${workMs.toFixed(1)} ms, by key: ${bareMs.toFixed(1)} ms`)
}

const isOfMonth = (name: string) => /^(event|audit_log)_202601[0-3]\d$/.test(name)

const ranges = {
  'the first page': { after: 0, limit: 250 },
  'a page in the middle': { after: 40_000, limit: 250 },
  'a page of a cursor that knows its day': { after: 40_000, since: '2026-01-17', limit: 250 },
  'a planned batch': { after: 40_000, to: 40_100, limit: 250 },
  'a page of entries whose events are kept': { after: 40_000, isKept: true, limit: 250 },
}
test.each(Object.entries(ranges))(
  '%s of entries: by the keys of log and event',
  async (name, range) => {
    const plans = await seeded.plansOf(() => listEntries(db, 'org_0', range))
    const scanned = plans.filter((plan) => plan['Node Type'] === 'Seq Scan')
    expect(scanned.flatMap((plan) => plan['Relation Name'] ?? []).filter(isOfMonth)).toEqual([])
    const conditions = plans.flatMap((plan) => plan['Index Cond'] ?? [])
    const [ofEvent, ofLog] = [
      /day = audit_log\.event_day.*id = audit_log\.event_id/,
      /organization_id = 'org_0'::text.*org_seq > '\d+'/,
    ]
    expect(conditions.filter((each) => !ofEvent.test(each) && !ofLog.test(each))).toEqual([])
    expect(conditions.filter((each) => ofEvent.test(each)).length).toBeGreaterThanOrEqual(30)
    expect(conditions.some((each) => ofLog.test(each))).toBe(true)
    // Pages come out of the index in their order, and reading ends with the page.
    const nodes = plans.map((plan) => plan['Node Type'])
    if (!('to' in range)) expect(nodes).not.toContain('Bitmap Heap Scan')
    const { rows: entries } = await listEntries(db, 'org_0', range)
    const count = Math.min(range.limit, 'to' in range ? range.to - range.after : Infinity)
    expect(entries.map(({ orgSeq }) => orgSeq)).toEqual(
      Array.from({ length: count }, (_, at) => range.after + at + 1),
    )
    expect(entries.every(({ event }) => event !== null)).toBe(true)
    await printTime(name, () => listEntries(db, 'org_0', range))
  },
)

test('5,001 sinks: those that have something to send are found without a scan for each', async () => {
  const lease = () => leaseCursors(db, { isFailing: false, limit: 24, perOrganization: 24 })
  const plans = await seeded.plansOf(lease)
  // Objects that wait for a digest are few, and read once.
  const loops = plans.filter((plan) => plan['Node Type'] === 'Nested Loop')
  expect(loops.flatMap(scansUnder).filter((name) => name !== 'export_object')).toEqual([])
  const again = await lease()
  expect(again).toEqual([])
  await printTime('looking for cursors when all are leased or caught up', lease)
  await sql`update export_cursor set lease_until = null`.execute(seeded.plainDb)
  expect((await lease()).map(({ sink }) => sink.organizationId).toSorted()).toEqual([
    'org_0',
    ...Array.from({ length: 9 }, (_, at) => `small_${at + 1}`),
  ])
})

type Plan = Awaited<ReturnType<typeof seeded.plansOf>>[number]
/** The tables that are read completely for each row of the other side. */
const scansUnder = (loop: Plan): string[] =>
  (loop.Plans?.slice(1) ?? []).flatMap((plan) =>
    plan['Node Type'] === 'Seq Scan' ? (plan['Relation Name'] ?? []) : scansUnder(plan),
  )

test('37 partitions without news', async () => {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer from pg_inherits where inhparent = 'event'::regclass`.execute(db)
  expect(rows[0]!.count).toBeGreaterThanOrEqual(37)
  const find = () =>
    transactNamed(seeded.plainDb, numberingSettings, (tx) => findShardsWithNews(tx, shards))
  expect(await find()).toEqual([])
  await printTime('looking for events without a number', find)
  await sql`update audit_cursor set seq = seq - 1 where shard = 0`.execute(seeded.plainDb)
  await expect.poll(find, { timeout: 20_000 }).toEqual([0])
  await sql`update audit_cursor set seq = seq + 1 where shard = 0`.execute(seeded.plainDb)
})

test('of 5,001 sinks the one that lags gets a gap', async () => {
  const days = { first: '2026-01-01', end: '2026-01-02' }
  const announce = () => transact(db, (tx) => announceGaps(tx, days, new Date()))
  const plans = await seeded.plansOf(announce)
  const scanned = plans.filter((plan) => plan['Node Type'] === 'Seq Scan')
  expect(scanned.flatMap((plan) => plan['Relation Name'] ?? []).filter(isOfMonth)).toEqual([])
  const { rows } = await sql<{ header: object }>`
    select organization_id, header from event where header->>'action' = 'gap'`.execute(db)
  expect(rows).toMatchObject([
    {
      organization_id: 'org_0',
      header: { cause: 'not_sent', from_seq: 1, to_seq: 2500, events: 2500 },
    },
  ])
  await printTime('looking for sinks that lag', announce, 3)
})
