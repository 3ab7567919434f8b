import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { Db } from '#platform/database.ts'
import { openSeeded } from '#testing/plans.ts'

import type { EventFilters } from './event-filter-store.ts'
import { type EventPage, hasEvent, type ListedEvent, listEvents } from './event-list-store.ts'
import type { TimeRange } from './event-time-store.ts'

// A month of days, each with its partition: every page comes out of indexes, whatever is looked for. MONTH_EVENTS=5000000 is
// what decisions/0053 was measured with.

const events = sizeOf({ usual: 150_000, long: 150_000, variable: 'MONTH_EVENTS' })

let seeded: Awaited<ReturnType<typeof openSeeded>>
let db: Db
beforeAll(async () => {
  seeded = await openSeeded({ file: 'month-of-events.sql', events })
  db = seeded.db
}, 120_000 + events)
afterAll(() => seeded[Symbol.asyncDispose]())

const firstPage: EventPage = { after: undefined, limit: 100, order: 'desc' }
const list = (filters: EventFilters & TimeRange, page: Partial<EventPage> = {}) =>
  listEvents(db, 'org_0', filters, { ...firstPage, ...page })

async function listAll(filters: EventFilters & TimeRange, limit: number): Promise<ListedEvent[]> {
  const all: ListedEvent[] = []
  for (;;) {
    const { rows, hasMore } = await list(filters, { after: all.at(-1)?.id, order: 'asc', limit })
    all.push(...rows)
    if (!hasMore) return all
  }
}

type Query = { filters: EventFilters; condition: string; isSorted?: true }
const queries: Record<string, Query> = {
  'all events': { filters: {}, condition: 'organization_id' },
  calls: { filters: { kind: 'enforcement' }, condition: 'organization_id' },
  'one project': { filters: { projectId: 'proj_4' }, condition: 'project_id' },
  'one policy': { filters: { policyId: 'pol_1' }, condition: 'policy_id' },
  'what was refused': { filters: { decision: 'refuse' }, condition: 'decision' },
  'what was allowed': { filters: { decision: 'allow' }, condition: 'organization_id' },
  'what has failed': { filters: { outcome: 'failed' }, condition: 'outcome' },
  'what was completed': { filters: { outcome: 'completed' }, condition: 'organization_id' },
  'one key': { filters: { keyId: 'key_6' }, condition: 'hashtextextended' },
  'the key of half of the calls': {
    filters: { actor: 'key_0' },
    condition: 'hashtextextended',
  },
  'an actor that there is none of': { filters: { actor: 'key_x' }, condition: 'hashtextextended' },
  'one member': { filters: { actor: 'mem_1' }, condition: 'hashtextextended' },
  'one action': { filters: { action: 'deleted' }, condition: 'action' },
  'one object': { filters: { objectId: 'thing_2' }, condition: 'object_id' },
  'one request': { filters: { requestId: requestOf(123_456) }, condition: 'request_id' },
  changes: { filters: { kind: 'revision' }, condition: 'kind' },
  'what there is none of': { filters: { kind: 'simulation' }, condition: 'kind' },
  'refused in one project': {
    filters: { decision: 'refuse', projectId: 'proj_4' },
    condition: 'decision|project_id',
    isSorted: true,
  },
  'one object by one member': {
    filters: { objectId: 'thing_2', actor: 'mem_1', action: 'updated' },
    condition: 'object_id|action|hashtextextended',
    isSorted: true,
  },
  'failed calls of one key': {
    filters: { outcome: 'failed', keyId: 'key_6' },
    condition: 'outcome|hashtextextended',
    isSorted: true,
  },
}
function requestOf(number: number) {
  return `req_${String(number).padStart(24, '0')}`
}

/** Events come out of the index in their order, and reading ends with the page. Those of several filters may be sorted. */
function expectIndexes(plans: Awaited<ReturnType<typeof seeded.plansOf>>, query: Query) {
  const scans = plans.filter((plan) => plan['Node Type'] === 'Seq Scan')
  // Those beside the month are empty.
  const scanned = scans.flatMap((plan) => plan['Relation Name'] ?? [])
  expect(scanned.filter((name) => name.startsWith('event_202601'))).toEqual([])
  const conditions = plans.flatMap((plan) => plan['Index Cond'] ?? [])
  for (const each of conditions) expect(each).toMatch(new RegExp(query.condition))
  const nodes = plans.map((plan) => plan['Node Type'])
  if (!query.isSorted) expect(nodes).not.toContain('Sort')
  return conditions.length
}

test.each(Object.entries(queries))('%s: through an index', async (_, query) => {
  const { id: middle } = (await list({ to: new Date('2026-01-15') })).rows[0]!
  for (const order of ['asc', 'desc'] as const) {
    for (const after of [undefined, middle]) {
      const run = () => list(query.filters, { order, after })
      const days = after === undefined ? 30 : 14
      const isPrepared = Object.keys(query.filters).length <= 1
      const plans = await (isPrepared ? seeded.keptPlansOf(run) : seeded.plansOf(run))
      expect(expectIndexes(plans, query)).toBeGreaterThanOrEqual(days)
    }
  }
})

test('a range of days looks only at their partitions', async () => {
  const range = { from: new Date('2026-01-10'), to: new Date('2026-01-12T06:00:00Z') }
  const plans = await seeded.plansOf(() => list(range))
  const tables = plans.flatMap((plan) => plan['Relation Name'] ?? [])
  expect(tables.filter((name) => name !== 'event_default')).toEqual([
    'event_20260110',
    'event_20260111',
    'event_20260112',
  ])
  const found = await listAll(range, 100)
  expect(found[0]!.at.toISOString() >= '2026-01-10').toBe(true)
  expect(found.at(-1)!.at.toISOString() < '2026-01-12T06').toBe(true)
  expect(found.length).toBe((2.25 / 30) * (events / 2))
})

test('every event once, in order, in pages of any filter', async () => {
  const seen = (await listAll({ decision: 'refuse' }, 100)).map(({ id }) => id)
  expect(seen).toEqual(seen.toSorted())
  expect(new Set(seen).size).toBe(events / 100)
})

test('the time of a page beside that of a bare query by key', { timeout: 120_000 }, async () => {
  const pooled = seeded.plainDb
  const { id, at } = (await list({})).rows[0]!
  const readBare = () =>
    sql`select header from event where day = ${at}::date and id = ${id}`.execute(pooled)
  const range = { from: new Date('2026-01-01'), to: new Date('2026-02-01') }
  const tooSlow: string[] = []
  for (const [name, { filters }] of Object.entries(queries)) {
    const read = () => listEvents(pooled, 'org_0', { ...filters, ...range }, usualPage)
    const [bareMs = 0, pageMs = 0] = await mediansMs(readBare, read)
    console.log(`${name}: ${pageMs.toFixed(2)} ms, by key: ${bareMs.toFixed(2)} ms`)
    if (pageMs > bareMs * 10 && Object.keys(filters).length <= 1) tooSlow.push(name)
  }
  // A small table on a busy machine says nothing about time.
  if (events >= 1_000_000) expect(tooSlow).toEqual([])
  expect(await hasEvent(db, 'org_0', id)).toBe(true)
  expect(await hasEvent(db, 'org_1', id)).toBe(false)
})

const usualPage: EventPage = { ...firstPage, limit: 20 }

/** In turns, so that other work on the machine slows all of them. The first rounds make the plans of each connection. */
async function mediansMs(...works: (() => Promise<unknown>)[]) {
  const times: number[][] = works.map(() => [])
  for (let round = 0; round < 50; round++) {
    for (const [index, work] of works.entries()) {
      const startedMs = performance.now()
      await work()
      if (round >= 20) times[index]!.push(performance.now() - startedMs)
    }
  }
  return times.map((each) => each.toSorted((one, other) => one - other)[15]!)
}
