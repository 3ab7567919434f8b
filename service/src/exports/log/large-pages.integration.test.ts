import { hash } from 'node:crypto'

import type { Endpoint } from '@gatehouse/contract/endpoint'
import { listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import { listAuditRecords } from '@gatehouse/contract/exports/audit-log'
import { createExport, listExportDeadLetters } from '@gatehouse/contract/exports/export-sink'
import {
  listGatewayHistory,
  restoreGatewayRevision,
  saveGatewayConfig,
} from '@gatehouse/contract/policy-gateway/gateway'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { insertEvents } from '#audit/event-store.ts'
import { numberAllEvents } from '#audit/log/testing/number-all-events.ts'
import { largeEvent } from '#audit/testing/large-event.ts'
import { createTestApi } from '#testing/test-api.ts'

const pageMaxBytes = 4_000_000

let api: Awaited<ReturnType<typeof createTestApi>>
beforeEach(async () => {
  api = await createTestApi()
})

async function writeLarge(sizes: readonly number[]): Promise<string[]> {
  const { organizationId } = api.organization
  const ids: string[] = []
  for (const [at, bytes] of sizes.entries()) {
    const event = largeEvent(organizationId, bytes, new Date(Date.now() + 1000 + at))
    await insertEvents(api.db, [event])
    ids.push(event.id)
  }
  await numberAllEvents(api.db)
  return ids
}

type Item = { id: string; record?: { event_id: string } }

/** Reads all pages of a list; each is cut by its bytes and not by its limit. */
async function readPages(
  endpoint: Endpoint,
  { query, params = {} }: { query: Record<string, string>; params?: Record<string, string> },
) {
  const sizes: number[] = []
  const items: Item[] = []
  for (let after: string | null = null; ;) {
    const sent = { params, query: { ...query, ...(after !== null && { after }) } }
    const { status, body } = await api.send(endpoint, sent)
    expect(status).toBe(200)
    sizes.push(Buffer.byteLength(JSON.stringify(body)))
    items.push(...(body.data as Item[]))
    if (!body.has_more) return { sizes, items }
    expect(body.data.length).toBeGreaterThan(0)
    after = body.last_id
  }
}

const half = Array.from({ length: 30 }, () => 500_000)

test.each(['asc', 'desc'])('a page of events ends at 4 MB, %s', async (order) => {
  const ids = await writeLarge(half)
  const query = { limit: '100', type: 'revision', order }
  const { sizes, items } = await readPages(listAuditEvents, { query })
  expect(Math.max(...sizes)).toBeLessThanOrEqual(pageMaxBytes)
  // Pages are used well: 15 MB do not take more than five of them.
  expect(sizes.length).toBeLessThanOrEqual(5)
  const listed = items.map(({ id }) => id).filter((id) => ids.includes(id))
  expect(listed).toEqual(order === 'asc' ? ids : ids.toReversed())
})

test('a page of records ends at 4 MB, and every record still has its hash', async () => {
  const ids = await writeLarge(half)
  const { sizes, items } = await readPages(listAuditRecords, { query: { limit: '1000' } })
  expect(Math.max(...sizes)).toBeLessThanOrEqual(pageMaxBytes)
  expect(sizes.length).toBeLessThanOrEqual(5)
  const listed = items.flatMap(({ record }) => record?.event_id ?? [])
  expect(listed.filter((id) => ids.includes(id))).toEqual(ids)
  for (const { record } of items) {
    const { payload, payload_salt, payload_hash } = record as unknown as Record<string, string>
    const salted = [Buffer.from(payload_salt!, 'hex'), Buffer.from(JSON.stringify(payload))]
    expect(hash('sha256', Buffer.concat(salted))).toBe(payload_hash)
  }
})

test('an event that is larger than a page is a page of its own, and the next one follows', async () => {
  const ids = await writeLarge([1000, 6_000_000, 1000, 6_000_000, 6_000_000, 1000])
  for (const [endpoint, query] of [
    [listAuditEvents, { limit: '100', order: 'asc', type: 'revision' }],
    [listAuditEvents, { limit: '100', type: 'revision' }],
    [listAuditRecords, { limit: '1000' }],
  ] as const) {
    const { sizes, items } = await readPages(endpoint, { query })
    expect(sizes.filter((bytes) => bytes > pageMaxBytes)).toHaveLength(3)
    const listed = items.map(({ id, record }) => record?.event_id ?? id)
    expect(listed.filter((id) => ids.includes(id)).toSorted()).toEqual(ids.toSorted())
  }
})

const terms = (revision: number) =>
  Array.from({ length: 1000 }, (_, at) => `${revision}-${at}-${'x'.repeat(110)}`)

test('a page of the history ends at 4 MB, and the event of a save is small', async () => {
  const revisions = Array.from({ length: 25 }, (_, at) => at + 1)
  for (const revision of revisions) {
    const rules = { denylist: terms(revision), allowlist: terms(revision) }
    const { status } = await api.send(saveGatewayConfig, { body: { config: { rules } } })
    expect(status).toBe(200)
  }
  for (const order of ['asc', 'desc']) {
    const { sizes, items } = await readPages(listGatewayHistory, { query: { limit: '100', order } })
    expect(Math.max(...sizes)).toBeLessThanOrEqual(pageMaxBytes)
    expect(sizes.length).toBeLessThanOrEqual(3)
    const listed = (items as unknown as { revision: number }[]).map(({ revision }) => revision)
    expect(listed).toEqual(order === 'asc' ? revisions : revisions.toReversed())
  }
  const { rows } = await sql<{ bytes: number; header: { history_id: string } }>`
    select octet_length(payload) as bytes, header from event
    where header->>'object' = 'policy_gateway.config' order by seq`.execute(api.db)
  expect(rows).toHaveLength(25)
  expect(Math.max(...rows.map(({ bytes }) => bytes))).toBeLessThan(2000)
  // What was saved is found by what the event says, and can be restored.
  const params = { history_id: rows[3]!.header.history_id }
  const { status, body } = await api.send(restoreGatewayRevision, { params })
  expect([status, (body as unknown as { config: object }).config]).toEqual([
    200,
    expect.objectContaining({ rules: expect.objectContaining({ denylist: terms(4) }) as object }),
  ])
})

test('the largest page of dead letters is far from 4 MB', async () => {
  const config = { endpoint: 'https://logs.example.com/', token: 'a-long-token' }
  const { body } = await api.send(createExport, { body: { type: 'splunk_hec', config } })
  const { id } = (body as unknown as { export: { id: string } }).export
  await sql`
    insert into export_dead_letter (sink_id, org_seq, event_day, event_id, error, attempts, created_at)
    select ${id}, at, now(), gen_random_uuid(), repeat('€', 500), 1, now()
    from generate_series(1, 150) as at`.execute(api.db)
  const sent = { params: { export_id: id }, query: { limit: '100' } }
  const { sizes, items } = await readPages(listExportDeadLetters, sent)
  expect(items).toHaveLength(150)
  expect(Math.max(...sizes)).toBeLessThan(pageMaxBytes / 10)
})
