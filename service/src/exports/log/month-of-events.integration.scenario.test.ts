import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { Db } from '#platform/database.ts'
import { openSeeded } from '#testing/plans.ts'

import {
  type EventFilters,
  type EventPage,
  hasEvent,
  type ListedEvent,
  listEvents,
} from './event-list-store.ts'

// A month of days, each with its partition: every page comes out of indexes, whatever is looked for.

let seeded: Awaited<ReturnType<typeof openSeeded>>
let db: Db
beforeAll(async () => {
  seeded = await openSeeded('month-of-events.sql')
  db = seeded.db
}, 120_000)
afterAll(() => seeded[Symbol.asyncDispose]())

const firstPage: EventPage = { after: undefined, limit: 100, order: 'desc' }
const list = (filters: EventFilters, page: Partial<EventPage> = {}) =>
  listEvents(db, 'org_0', filters, { ...firstPage, ...page })

async function listAll(filters: EventFilters, limit: number): Promise<ListedEvent[]> {
  const all: ListedEvent[] = []
  for (;;) {
    const { rows, hasMore } = await list(filters, { after: all.at(-1)?.id, order: 'asc', limit })
    all.push(...rows)
    if (!hasMore) return all
  }
}

type Query = { filters: EventFilters; condition: string; isRare?: true }
const queries: Record<string, Query> = {
  'all events': { filters: {}, condition: 'organization_id' },
  calls: { filters: { kind: 'enforcement' }, condition: 'organization_id' },
  'one project': { filters: { projectId: 'proj_4' }, condition: 'project_id' },
  'one policy': { filters: { policyId: 'pol_1' }, condition: 'policy_id' },
  'what was refused': { filters: { decision: 'refuse' }, condition: 'decision' },
  'what was allowed': { filters: { decision: 'allow' }, condition: 'organization_id' },
  changes: { filters: { kind: 'revision' }, condition: 'kind', isRare: true },
  'what there is none of': { filters: { kind: 'simulation' }, condition: 'kind', isRare: true },
  'refused in one project': {
    filters: { decision: 'refuse', projectId: 'proj_4' },
    condition: 'decision|project_id',
    isRare: true,
  },
}

test.each(Object.entries(queries))('%s: through an index', async (_, query) => {
  const { filters, condition, isRare } = query
  const { id: middle } = (await list({ to: new Date('2026-01-15') })).rows[0]!
  for (const order of ['asc', 'desc'] as const) {
    for (const after of [undefined, middle]) {
      const plans = await seeded.plansOf(() => list(filters, { order, after }))
      const scans = plans.filter((plan) => plan['Node Type'] === 'Seq Scan')
      // Those beside the month are empty.
      const scanned = scans.flatMap((plan) => plan['Relation Name'] ?? [])
      expect(scanned.filter((name) => name.startsWith('event_202601'))).toEqual([])
      const conditions = plans.flatMap((plan) => plan['Index Cond'] ?? [])
      expect(conditions.length).toBeGreaterThanOrEqual(30)
      for (const each of conditions) expect(each).toMatch(new RegExp(condition))
      // A few events may be sorted. Many come out of the index in their order, and reading ends with the page.
      const nodes = plans.map((plan) => plan['Node Type'])
      if (!isRare) expect(nodes).not.toContain('Sort')
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
  const found = await listAll(range, 1000)
  expect(found[0]!.at.toISOString() >= '2026-01-10').toBe(true)
  expect(found.at(-1)!.at.toISOString() < '2026-01-12T06').toBe(true)
  // 2.25 days of 2,500 events.
  expect(found.length).toBe(5625)
})

test('every event once, in order, in pages of any filter', async () => {
  const seen = (await listAll({ decision: 'refuse' }, 100)).map(({ id }) => id)
  expect(seen).toEqual(seen.toSorted())
  expect(new Set(seen).size).toBe(1500)
})

test('the time of a page beside that of a bare query by key', async () => {
  const { id, at } = (await list({})).rows[0]!
  const timed = async (work: () => Promise<unknown>) => {
    const times: number[] = []
    for (let round = 0; round < 20; round++) {
      const startedMs = performance.now()
      await work()
      times.push(performance.now() - startedMs)
    }
    return times.toSorted((one, other) => one - other)[10]!
  }
  const bareMs = await timed(() =>
    sql`select header from event where day = ${at}::date and id = ${id}`.execute(db),
  )
  for (const [name, { filters }] of Object.entries(queries)) {
    const pageMs = await timed(() => list(filters, { limit: 20 }))
    console.log(`${name}: ${pageMs.toFixed(1)} ms, by key: ${bareMs.toFixed(1)} ms`)
  }
  expect(await hasEvent(db, 'org_0', id)).toBe(true)
  expect(await hasEvent(db, 'org_1', id)).toBe(false)
})
