import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { insertEvents } from '#audit/event-store.ts'
import { buildRevisionEvent, operator } from '#audit/event.ts'
import type { Db } from '#platform/database.ts'
import { transactNamed } from '#platform/transaction.ts'
import { connectPatiently, createTestDatabase } from '#testing/test-database.ts'

import { numberingSettings } from './log-store.ts'
import { sequenceEvents } from './sequence-events.ts'

// A worker numbers several times in a second. Its statements must neither be planned each time nor read more than the events of a
// round, however many wait and however little PostgreSQL knows about the partition of today.

async function write(db: Db, count: number) {
  const after = { id: 'x', object: 'thing' }
  const change = { by: operator, action: 'created', before: null, after } as const
  const events = Array.from({ length: count }, (_, at) =>
    buildRevisionEvent({ organizationId: `org_${at % 100}`, ...change }, new Date()),
  )
  for (let at = 0; at < count; at += 1000) await insertEvents(db, events.slice(at, at + 1000))
}

type Plan = { 'Node Type': string; 'Relation Name'?: string; 'Index Name'?: string; Plans?: Plan[] }
const flatten = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(flatten)]

async function nodesOf(db: Db, execute: string) {
  const name = `explain_${execute.split('(')[0]}`
  const statement = { name, text: `explain (format json) execute ${execute}` }
  const [row] = await transactNamed(db, numberingSettings, (tx) =>
    tx.run<[plan: [{ Plan: Plan }]]>(statement, []),
  )
  return flatten(row![0][0].Plan)
}

test('a round is planned once, for any values, and takes events out of the index in their order', async () => {
  const database = await createTestDatabase()
  const db = connectPatiently({ url: database.url, poolSize: 1 })
  onTestFinished(async () => {
    await db.destroy()
    await database[Symbol.asyncDispose]()
  })
  await sql`select make_event_partition(current_date - days) from generate_series(1, 30) as days`.execute(
    db,
  )
  await sequenceEvents(db)
  await write(db, 20_000)
  await expect
    .poll(async () => (await sequenceEvents(db)).events, { timeout: 30_000 })
    .toBeGreaterThan(0)
  for (let round = 0; round < 8; round++) await sequenceEvents(db)

  const { rows } = await sql<{ name: string; custom: number; generic: number }>`
    select name, custom_plans::integer as custom, generic_plans::integer as generic
    from pg_prepared_statements where name like 'audit_%' order by name`.execute(db)
  const atLeast = expect.toSatisfy((count: number) => count >= 8)
  expect(rows).toEqual(
    ['audit_append', 'audit_find_heads', 'audit_list_committed', 'audit_lock_cursors']
      .map((name) => ({ name, custom: 0, generic: atLeast }))
      .concat([{ name: 'audit_shards_with_news', custom: 0, generic: atLeast }]),
  )

  const all = `'{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}'`
  for (const execute of [`audit_list_committed(${all}, 62)`, `audit_shards_with_news(${all})`]) {
    const nodes = await nodesOf(db, execute)
    const kinds = nodes.map((node) => node['Node Type'])
    expect(kinds).toContain('Merge Append')
    expect(kinds.filter((kind) => /Sort|Hash/.test(kind))).toEqual([])
    const scans = nodes.filter((node) => node['Relation Name']?.startsWith('event_'))
    expect(scans.length).toBeGreaterThan(30)
    expect(scans.filter((scan) => !/^Index (Only )?Scan$/.test(scan['Node Type']))).toEqual([])
    expect(scans.filter((scan) => !scan['Index Name']?.includes('shard_xid_seq'))).toEqual([])
  }
}, 120_000)
