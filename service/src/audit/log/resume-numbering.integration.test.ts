import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { insertEvents } from '#audit/event-store.ts'
import { buildRevisionEvent, operator } from '#audit/event.ts'
import { numberAllEvents } from '#audit/log/testing/number-all-events.ts'
import { dropOldPartition } from '#audit/partitions/partition-store.ts'
import type { Db } from '#platform/database.ts'
import { createMetrics } from '#platform/metrics.ts'
import { silentLog } from '#testing/silent-log.ts'
import { createTestDatabase } from '#testing/test-database.ts'

import { checkCursor } from './log-tasks.ts'
import { resumeNumbering } from './resume-numbering.ts'
import { sequenceEvents } from './sequence-events.ts'

async function openDatabase() {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  return database.db
}

async function write(db: Db, organizationId: string, count: number, at = new Date()) {
  const after = { id: 'x', object: 'thing' }
  const change = { organizationId, by: operator, action: 'created', before: null, after } as const
  const events = Array.from({ length: count }, () => buildRevisionEvent(change, at))
  await insertEvents(db, events)
  return events.map(({ id }) => id)
}

/** Makes the database look as if it came with a dump from a server that had given this many more transaction numbers. */
async function moveServer(db: Db, transactions: number) {
  await db.transaction().execute(async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx) // events are immutable otherwise
    for (const table of ['event', 'audit_cursor']) {
      await sql`
        update ${sql.table(table)} set xid = (xid::text::bigint + ${transactions})::text::xid8
        where xid > '0'`.execute(tx)
    }
  })
}

const entriesOf = async (db: Db, organizationId: string) =>
  db
    .selectFrom('audit_log')
    .select(['org_seq as orgSeq', 'event_id as eventId'])
    .where('organization_id', '=', organizationId)
    .orderBy('org_seq')
    .execute()

const idsOf = async (db: Db, organizationId: string) =>
  (await entriesOf(db, organizationId)).map(({ eventId }) => eventId)

const far = 1_000_000_000_000

test('on another server events get no numbers until the numbering is resumed, and then each gets one', async () => {
  const db = await openDatabase()
  const before = await write(db, 'org_1', 5)
  const others = await write(db, 'org_2', 3)
  await numberAllEvents(db)
  const open = await write(db, 'org_1', 2) // in the dump, and without a number
  await moveServer(db, far)
  const later = await write(db, 'org_1', 3)
  await sequenceEvents(db)
  expect(await idsOf(db, 'org_1')).toHaveLength(5)

  expect(await resumeNumbering(db)).toBeGreaterThanOrEqual(open.length)
  await numberAllEvents(db)
  const resumed = (await idsOf(db, 'org_1')).slice(5)
  expect(resumed.slice(0, 2).toSorted()).toEqual(open.toSorted())
  expect(resumed.slice(2).toSorted()).toEqual(later.toSorted())
  expect(await resumeNumbering(db)).toBe(0)

  const newest = await write(db, 'org_1', 1)
  await numberAllEvents(db)
  const entries = await entriesOf(db, 'org_1')
  expect(entries.map(({ orgSeq }) => Number(orgSeq))).toEqual(
    Array.from({ length: 11 }, (_, at) => at + 1),
  )
  const all = [...before, ...open, ...later, ...newest]
  expect(entries.map(({ eventId }) => eventId).toSorted()).toEqual(all.toSorted())
  expect((await idsOf(db, 'org_2')).toSorted()).toEqual(others.toSorted())
})

test('events that came with a dump keep their numbers when the server reaches their transactions', async () => {
  const db = await openDatabase()
  await write(db, 'org_1', 5)
  await numberAllEvents(db)
  await moveServer(db, 3000)
  await write(db, 'org_1', 2)
  await resumeNumbering(db)
  await numberAllEvents(db)
  const numbered = await entriesOf(db, 'org_1')
  expect(numbered).toHaveLength(7)
  await sql`
    do $$ begin
      for each in 1..4000 loop
        perform pg_current_xact_id();
        commit;
      end loop;
    end $$`.execute(db)
  const [newest] = await write(db, 'org_1', 1)
  await numberAllEvents(db)
  await sequenceEvents(db)
  expect(await entriesOf(db, 'org_1')).toEqual([...numbered, { orgSeq: '8', eventId: newest }])
})

test('what has no number on another server is reported and not dropped', async () => {
  const db = await openDatabase()
  const problems: string[] = []
  const log = {
    ...silentLog,
    problem: (code: string, thrown: unknown) => void problems.push(`${code}: ${String(thrown)}`),
  }
  const metrics = createMetrics()
  const stopped = async () => (await metrics.auditNumberingStopped.get()).values[0]?.value
  const drop = () => dropOldPartition(db, 30, async () => undefined)

  const old = new Date(Date.now() - 50 * 24 * 60 * 60 * 1000)
  await sql`select make_event_partition(${old}::date)`.execute(db)
  await write(db, 'org_1', 1)
  await numberAllEvents(db)
  await checkCursor({ db, log, metrics })
  expect([problems, await stopped()]).toEqual([[], 0])

  await moveServer(db, far)
  await write(db, 'org_1', 1, old)
  await checkCursor({ db, log, metrics })
  expect(problems).toEqual([expect.stringContaining('Run: gatehouse operator audit resume')])
  expect([await stopped(), await drop()]).toEqual([1, undefined])

  await resumeNumbering(db)
  await numberAllEvents(db)
  await checkCursor({ db, log, metrics })
  expect([problems.length, await stopped()]).toEqual([1, 0])
  expect(await drop()).toMatch(/^event_\d{8}$/)
})

test('what was stopped stays stopped when this server has given as many transaction numbers as the other', async () => {
  const db = await openDatabase()
  await write(db, 'org_1', 1)
  await numberAllEvents(db)
  await moveServer(db, far)
  const meanwhile = await write(db, 'org_1', 2)
  await checkCursor({ db, log: silentLog, metrics: createMetrics() })
  // As if the numbers of the other server had been passed: the events written meanwhile are behind the cursor.
  await moveServer(db, -far)
  const { rows } = await sql<{ xid: string }>`select pg_current_xact_id()::text as xid`.execute(db)
  await sql`update audit_cursor set xid = ${rows[0]!.xid}::text::xid8 where xid > '0'`.execute(db)
  const later = await write(db, 'org_1', 1)
  await sequenceEvents(db)
  expect(await idsOf(db, 'org_1')).toHaveLength(1)
  await resumeNumbering(db)
  await numberAllEvents(db)
  const ids = await idsOf(db, 'org_1')
  expect(ids).toHaveLength(4)
  expect(ids).toEqual(expect.arrayContaining([...meanwhile, ...later]))
})
