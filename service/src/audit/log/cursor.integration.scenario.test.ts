import { setTimeout as sleep } from 'node:timers/promises'

import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { insertEvents } from '#audit/event-store.ts'
import { buildRevisionEvent, operator } from '#audit/event.ts'
import type { Db } from '#platform/database.ts'
import { connectPatiently, createTestDatabase } from '#testing/test-database.ts'

import { sequenceEvents } from './sequence-events.ts'

// Numbers of a sequence are handed out before their transactions commit, in any order. A reader that goes on after the highest
// number it has seen misses what commits later with a lower one; the audit log must not.

const rows = sizeOf({ usual: 60_000, long: 500_000, variable: 'AUDIT_CURSOR_ROWS' })
const writers = 6
const organizations = Array.from({ length: 40 }, (_, at) => `org_${at}`)
const statementsMax = 6
const eventsMax = 100
const pauseMaxMs = 12

const upTo = (most: number) => 1 + Math.floor(Math.random() * most)

const anyEvent = () =>
  buildRevisionEvent(
    {
      organizationId: organizations[upTo(organizations.length) - 1]!,
      by: operator,
      action: 'created',
      before: null,
      after: { id: 'x', object: 'thing' },
    },
    new Date(),
  )

/** Transactions of any length, with pauses in which others commit. */
async function write(db: Db, count: number) {
  for (let left = count; left > 0;) {
    await db.transaction().execute(async (tx) => {
      for (let statements = upTo(statementsMax); statements > 0 && left > 0; statements--) {
        const events = Array.from({ length: Math.min(left, upTo(eventsMax)) }, anyEvent)
        left -= events.length
        await insertEvents(tx, events)
        await sleep(upTo(pauseMaxMs))
      }
    })
  }
}

/** What a reader gets who asks for higher numbers only. */
async function readPlainly(db: Db, isOver: () => boolean): Promise<number> {
  let [last, read] = ['0', 0]
  for (;;) {
    const wasOver = isOver()
    const { rows: page } = await sql<{ seq: string }>`
      select seq from event where seq > ${last}::bigint order by seq limit 5000`.execute(db)
    read += page.length
    last = page.at(-1)?.seq ?? last
    if (page.length > 0) continue
    if (wasOver) return read
    await sleep(5)
  }
}

async function number(db: Db, isOver: () => boolean) {
  for (;;) {
    const wasOver = isOver()
    const { events } = await sequenceEvents(db)
    if (events === 0 && wasOver) return
    if (events === 0) await sleep(1)
  }
}

test(`of ${rows} events by ${writers} writers, none is missed and none numbered twice; a plain cursor misses some`, async () => {
  await using database = await createTestDatabase()
  const db = connectPatiently({
    url: database.url,
    poolSize: writers + 2,
    statementTimeoutMs: 120_000,
  })
  // Only for the plain reader, whose pages would otherwise read the whole table.
  await sql`create index on event (seq)`.execute(db)
  let isOver = false
  const startedMs = performance.now()
  const writing = Promise.all(
    Array.from({ length: writers }, (_, at) => write(db, Math.floor((rows + at) / writers))),
  ).finally(() => (isOver = true))
  const [read] = await Promise.all([
    readPlainly(db, () => isOver),
    number(db, () => isOver),
    writing,
  ])
  const seconds = (performance.now() - startedMs) / 1000
  const { rows: found } = await sql<Record<string, number>>`
    select (select count(*)::integer from event) as written,
      (select count(*)::integer from audit_log) as numbered,
      (select count(distinct event_id)::integer from audit_log) as events,
      (select count(*)::integer from event join audit_log on event_id = id and event_day = event.day
        and audit_log.organization_id = event.organization_id) as matching,
      (select count(*)::integer from (
        select from audit_log group by organization_id
        having min(org_seq) <> 1 or max(org_seq) <> count(*) or count(distinct org_seq) <> count(*)
      ) as broken) as "organizationsWithGaps"`.execute(db)
  await db.destroy()
  console.log(
    `${rows} events in ${seconds.toFixed(1)} s: the log misses ${rows - (found[0]?.['matching'] ?? 0)}, a plain cursor ${rows - read}`,
  )
  expect(found).toEqual([
    { written: rows, numbered: rows, events: rows, matching: rows, organizationsWithGaps: 0 },
  ])
  expect(read).toBeLessThan(rows)
}, 900_000)
