import { cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { insertEvents } from '#audit/event-store.ts'
import { buildRevisionEvent, operator } from '#audit/event.ts'
import { numberAllEvents } from '#audit/log/testing/number-all-events.ts'
import { migrationsFolder } from '#platform/assets.ts'
import type { Db } from '#platform/database.ts'
import { migrate } from '#platform/migrations.ts'
import { silentLog } from '#testing/silent-log.ts'
import { createTestDatabase, openEmptyDatabase } from '#testing/test-database.ts'

import { keepPartitions } from './keep-partitions.ts'

const dayMs = 24 * 60 * 60 * 1000
const today = new Date().toISOString().slice(0, 10)
/** Noon, so that a test that runs at midnight does not change the day. */
const noonOf = (days: number) => new Date(Date.parse(today) + days * dayMs + dayMs / 2)
const nameOf = (days: number) =>
  `event_${noonOf(days).toISOString().slice(0, 10).replaceAll('-', '')}`

async function openDatabase() {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  return database.db
}

/** Writes one event for each of these days, counted from today. */
async function write(db: Db, ...days: number[]) {
  const events = days.map((day) =>
    buildRevisionEvent(
      {
        organizationId: 'org_1',
        by: operator,
        action: 'created',
        before: null,
        after: { id: 'x', object: 'thing' },
      },
      noonOf(day),
    ),
  )
  await insertEvents(db, events)
  return events
}

async function partitionsIn(db: Db) {
  const { rows } = await sql<{ name: string }>`
    select name from event_partition order by first_day`.execute(db)
  return rows.map(({ name }) => name)
}

/** In which partition each event is, by time. */
async function placesIn(db: Db) {
  const { rows } = await sql<{ name: string }>`
    select tableoid::regclass::text as name from event order by at`.execute(db)
  return rows.map(({ name }) => name)
}

/** Only events that have a number in the audit log are dropped. */
async function keep(db: Db, retentionDays = 30) {
  await numberAllEvents(db)
  return keepUnnumbered(db, retentionDays)
}

function keepUnnumbered(db: Db, retentionDays: number) {
  const problems: string[] = []
  const dropped: unknown[] = []
  const log = {
    ...silentLog,
    problem: (code: string, thrown: unknown) => void problems.push(`${code} ${String(thrown)}`),
    event: (_: string, fields?: object) => void dropped.push(fields),
  }
  const beforeDrop = async () => undefined
  return keepPartitions({ db, log, retentionDays, beforeDrop }).then(() => ({ problems, dropped }))
}
const nothingDone = { problems: [], dropped: [] }

test('partitions are there from yesterday on, and a week ahead once the worker runs', async () => {
  const db = await openDatabase()
  expect(await partitionsIn(db)).toEqual([nameOf(-1), nameOf(0), nameOf(1)])
  expect(await keep(db)).toEqual(nothingDone)
  const days = [-1, 0, 1, 2, 3, 4, 5, 6, 7]
  expect(await partitionsIn(db)).toEqual(days.map(nameOf))
  expect(await keep(db)).toEqual(nothingDone)
  await write(db, 0, 7)
  expect(await placesIn(db)).toEqual([nameOf(0), nameOf(7)])
})

test('events of every partition are immutable, also of one that was made later', async () => {
  const db = await openDatabase()
  await keep(db)
  await write(db, 0, 7, 900)
  for (const name of ['event', nameOf(0), nameOf(7), 'event_default']) {
    const table = sql.table(name)
    for (const statement of [
      sql`delete from ${table}`,
      sql`truncate ${table}`,
      sql`update ${table} set header = '{}'`,
    ]) {
      await expect(statement.execute(db)).rejects.toThrow('its rows are immutable')
    }
  }
  expect(await placesIn(db)).toHaveLength(3)
})

test('what is older than the retention is dropped, by days, and nothing else', async () => {
  const db = await openDatabase()
  for (const days of [-50, -31, -30, -29]) {
    await sql`select make_event_partition(${noonOf(days)}::date)`.execute(db)
  }
  await write(db, -50, -31, -30, -29, 0)
  expect(await keep(db)).toEqual({
    problems: [],
    dropped: [{ partition: nameOf(-50) }, { partition: nameOf(-31) }],
  })
  expect(await placesIn(db)).toEqual([nameOf(-30), nameOf(-29), nameOf(0)])
  expect((await keep(db, 29)).dropped).toEqual([{ partition: nameOf(-30) }])
})

test('events that have no number in the audit log are kept', async () => {
  const db = await openDatabase()
  await sql`select make_event_partition(${noonOf(-50)}::date)`.execute(db)
  await write(db, -50)
  expect(await keepUnnumbered(db, 30)).toEqual(nothingDone)
  expect((await keep(db)).dropped).toEqual([{ partition: nameOf(-50) }])
})

test('what was written while no worker ran gets a partition of its own, and is dropped with it', async () => {
  const db = await openDatabase()
  for (const name of await partitionsIn(db))
    await sql`select drop_event_partition(${name})`.execute(db)
  const [first] = await write(db, -2, -1, 0)
  expect(await placesIn(db)).toEqual(Array(3).fill('event_default'))
  expect(await keep(db)).toEqual(nothingDone)
  const dated = `${nameOf(-2)}_${nameOf(0).slice('event_'.length)}`
  expect(await placesIn(db)).toEqual(Array(3).fill(dated))
  await insertEvents(db, [first!]) // a settlement that is delivered twice
  await write(db, 0, 1, 900)
  expect(await placesIn(db)).toEqual([...Array(4).fill(dated), nameOf(1), 'event_default'])
  await expect(sql`truncate ${sql.table(dated)}`.execute(db)).rejects.toThrow('immutable')
})

test.each([
  ['past', -5000],
  ['future', 5000],
])('an event of the distant %s is kept, in the default partition', async (_, days) => {
  const db = await openDatabase()
  await write(db, days, 0)
  expect(await keep(db)).toEqual(nothingDone)
  expect((await placesIn(db)).toSorted()).toEqual([nameOf(0), 'event_default'])
})

test('workers at the same time make each partition once', async () => {
  const db = await openDatabase()
  const done = await Promise.all(Array.from({ length: 4 }, () => keep(db)))
  expect(done).toEqual(Array(4).fill(nothingDone))
  expect(await partitionsIn(db)).toHaveLength(9)
})

test('a reader delays a drop and not the writers', async () => {
  const db = await openDatabase()
  await sql`select make_event_partition(${noonOf(-50)}::date)`.execute(db)
  await write(db, -50)
  await numberAllEvents(db)
  let longestMs = 0
  let isDone = false
  const writer = async () => {
    while (!isDone) {
      const startedMs = performance.now()
      await write(db, 0)
      longestMs = Math.max(longestMs, performance.now() - startedMs)
    }
  }
  await db.transaction().execute(async (reader) => {
    await sql`select count(*) from event`.execute(reader)
    const writing = writer()
    const waitedMs = performance.now()
    expect(await keepUnnumbered(db, 30)).toEqual(nothingDone)
    console.log(
      `gave up after ${Math.round(performance.now() - waitedMs)} ms, the longest write took ${Math.round(longestMs)} ms`,
    )
    isDone = true
    await writing
  })
  // Without a limit they would have waited for the reader, which ends after them.
  expect(await partitionsIn(db)).toContain(nameOf(-50))
  expect((await keep(db)).dropped).toEqual([{ partition: nameOf(-50) }])
})

test('events from before there were days are in one partition after the migration', async () => {
  const { db } = await openEmptyDatabase()
  const folder = await mkdtemp(join(tmpdir(), 'migrations-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const names = (await readdir(migrationsFolder)).filter((name) => name < '0020')
  for (const name of names)
    await cp(fileURLToPath(new URL(name, migrationsFolder)), join(folder, name))
  await migrate(db, pathToFileURL(`${folder}/`))
  const events = await write(db, -20, -3, 0)
  await migrate(db)
  const dated = `${nameOf(-20)}_${nameOf(0).slice('event_'.length)}`
  expect(await placesIn(db)).toEqual(Array(3).fill(dated))
  await insertEvents(db, events)
  await write(db, 1)
  expect(await placesIn(db)).toEqual([...Array(3).fill(dated), nameOf(1)])
})
