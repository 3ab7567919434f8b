import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { shardOf } from '#audit/shard.ts'
import type { Db } from '#platform/database.ts'
import { createUuid } from '#platform/id.ts'
import { openSeeded } from '#testing/plans.ts'

import type { RecordedEvent } from './recorded-call.ts'
import { readJudgedCalls } from './replay-store.ts'

// A month of calls of two large organizations, and a small one in the same shard of the log.

let seeded: Awaited<ReturnType<typeof openSeeded>>
let db: Db
beforeAll(async () => {
  seeded = await openSeeded('month-of-events.sql')
  db = seeded.db
}, 120_000)
afterAll(() => seeded[Symbol.asyncDispose]())

/** The events of the large organizations are in the first shard. */
const organizationId = Array.from({ length: 1000 }, (_, at) => `org_small_${at}`).find(
  (id) => shardOf(id) === 0,
)!

async function write(at: Date, header: object): Promise<string> {
  const id = createUuid(at)
  await sql`
    insert into event (day, id, shard, organization_id, kind, at, header, payload, salt, payload_hash)
    values (${at.toISOString().slice(0, 10)}::date, ${id}::uuid, 0, ${organizationId}, 'enforcement', ${at},
      ${JSON.stringify(header)}::jsonb, '{}', '\\x00', sha256('{}'))`.execute(db)
  return id
}

async function readAll(): Promise<RecordedEvent[][]> {
  const pages: RecordedEvent[][] = []
  for await (const page of readJudgedCalls(db, organizationId)) pages.push(page)
  return pages
}

test('calls of a small organization are read without those of others', async () => {
  const ids: string[] = []
  for (const day of ['03', '09', '27']) {
    ids.unshift(await write(new Date(`2026-01-${day}T12:00:00Z`), { phase: 'call', scores: [] }))
  }
  await write(new Date('2026-01-05T12:00:00Z'), { phase: 'call' })
  const pages = await readAll()
  // 150,000 events of others would be 75 pages of 2,000.
  expect(pages).toHaveLength(1)
  expect(pages.flat().map(({ id }) => id)).toEqual(ids)

  const plans = await seeded.plansOf(readAll)
  const scanned = plans.filter((plan) => plan['Node Type'] === 'Seq Scan')
  const ofMonth = (plan: { 'Relation Name'?: string }) =>
    plan['Relation Name']?.startsWith('event_202601') ?? false
  expect(scanned.filter(ofMonth)).toEqual([])
  const conditions = plans.flatMap((plan) => plan['Index Cond'] ?? [])
  expect(conditions.length).toBeGreaterThanOrEqual(60)
  for (const each of conditions) expect(each).toContain('organization_id')
})

test('every event comes once, and what monitoring found before its call, however many share a millisecond', async () => {
  const moments = Array.from({ length: 4 }, (_, at) => new Date(Date.UTC(2026, 0, 20, 0, 0, 0, at)))
  const written: string[] = []
  for (const moment of moments) {
    for (let call = 0; call < 300; call++) {
      const id = await write(moment, { phase: 'call', scores: [] })
      written.push(id, await write(moment, { phase: 'monitoring', call_event_id: id }))
    }
  }
  const pages = await readAll()
  expect(pages.length).toBeGreaterThan(1)
  const read = pages.flat().filter(({ id }) => written.includes(id))
  expect(read).toHaveLength(written.length)
  const seen = new Set<string>()
  for (const { id, header } of read) {
    const { call_event_id } = header as { call_event_id?: string }
    if (call_event_id !== undefined) expect(seen.has(call_event_id)).toBe(false)
    seen.add(id)
  }
  expect(seen.size).toBe(written.length)
})
