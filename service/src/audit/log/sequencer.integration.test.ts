import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { insertEvents } from '#audit/event-store.ts'
import { buildRevisionEvent, operator } from '#audit/event.ts'
import { shardOf } from '#audit/shard.ts'
import { runTask } from '#platform/background/run-task.ts'
import { systemClock } from '#platform/clock.ts'
import type { Db, Tx } from '#platform/database.ts'
import { createMetrics } from '#platform/metrics.ts'
import { transactNamed } from '#platform/transaction.ts'
import { silentLog } from '#testing/silent-log.ts'
import { connectPatiently, createTestDatabase } from '#testing/test-database.ts'

import { findShardsWithNews, numberingSettings, shards } from './log-store.ts'
import { auditLogTasks } from './log-tasks.ts'
import { batchMax, sequenceEvents } from './sequence-events.ts'
import { createSequencer } from './sequencer.ts'
import { numberAllEvents } from './testing/number-all-events.ts'

// One shard that cannot be numbered must not delay the other fifteen; and whatever happens to a worker or its connection, every
// event gets one number.

/** One organization of each shard. */
const organizations = Array.from({ length: 16 }, (_, shard) => {
  let at = 0
  while (shardOf(`org_${at}`) !== shard) at++
  return `org_${at}`
})
const [damaged, ...sound] = organizations as [string, ...string[]]

async function openDatabase() {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  return database
}

async function write(db: Db, organizationIds: readonly string[], count: number) {
  const after = { id: 'x', object: 'thing' }
  const events = organizationIds.flatMap((organizationId) =>
    Array.from({ length: count }, () =>
      buildRevisionEvent(
        { organizationId, by: operator, action: 'created', before: null, after },
        new Date(),
      ),
    ),
  )
  for (let at = 0; at < events.length; at += 1000) {
    await insertEvents(db, events.slice(at, at + 1000))
  }
}

/** How many events of each organization have a number. */
async function countEntries(db: Db): Promise<Record<string, number>> {
  const { rows } = await sql<{ id: string; count: number }>`
    select organization_id as id, count(*)::integer from audit_log group by organization_id`.execute(
    db,
  )
  return Object.fromEntries(rows.map(({ id, count }) => [id, count]))
}

const countsOf = (organizationIds: readonly string[], count: number) =>
  Object.fromEntries(organizationIds.map((id) => [id, count]))

/** Every event has one number, without gaps, in the order of commits. */
async function expectAllNumbered(db: Db) {
  const { rows } = await sql<{ isRight: boolean }>`
    select (select count(*) from audit_log) = (select count(*) from event) and bool_and(org_seq = place) as "isRight"
    from (
      select event.id, row_number() over (partition by organization_id order by xid, seq) as place from event
    ) as event left join audit_log on event_id = id`.execute(db)
  expect(rows).toEqual([{ isRight: true }])
}

/** Numbers as the worker does, with a clock and a log of the test. Waits for transactions of other tests. */
function openSequencer(db: Db) {
  const problems: string[] = []
  const metrics = createMetrics()
  let ms = 0
  const log = {
    ...silentLog,
    problem: (code: string, thrown: unknown) =>
      void problems.push(`${code}: ${thrown instanceof Error ? thrown.message : ''}`),
  }
  const sequencer = createSequencer({ db, now: systemClock, log, metrics, nowMs: () => ms })
  return {
    ...sequencer,
    problems,
    pass: (passedMs: number) => void (ms += passedMs),
    failing: async () => (await metrics.auditShardsFailing.get()).values[0]?.value,
    async numberUntil(counts: Record<string, number>) {
      const number = async () => {
        await sequencer.numberEvents()
        return countEntries(db)
      }
      await expect.poll(number, { timeout: 30_000 }).toEqual(counts)
    },
  }
}

/** Rows of the log are immutable otherwise. */
const tamper = (db: Db, change: (tx: Tx) => Promise<unknown>) =>
  db.transaction().execute(async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx)
    await change(tx)
  })

const damages = {
  'an event that cannot be written as a record': {
    damage: (tx: Tx) =>
      sql`update event set header = header || '{"x": 1e999}' where organization_id = ${damaged}`.execute(
        tx,
      ),
    mend: (tx: Tx) =>
      sql`update event set header = header - 'x' where organization_id = ${damaged}`.execute(tx),
  },
  'a head with half a frontier': {
    damage: (tx: Tx) =>
      sql`update audit_head set frontier = substr(frontier, 1, 16) || frontier where organization_id = ${damaged}`.execute(
        tx,
      ),
    mend: (tx: Tx) =>
      sql`update audit_head set frontier = substr(frontier, 17) where organization_id = ${damaged}`.execute(
        tx,
      ),
  },
  'a number that is taken': {
    damage: (tx: Tx) =>
      sql`
        insert into audit_log (day, organization_id, org_seq, event_day, event_id, leaf)
        select day, organization_id, 2, event_day, gen_random_uuid(), leaf
        from audit_log where organization_id = ${damaged}`.execute(tx),
    mend: (tx: Tx) =>
      sql`
        delete from audit_log where organization_id = ${damaged}
          and not exists (select from event where id = event_id)`.execute(tx),
  },
}

test.each(Object.entries(damages))(
  'a shard fails alone, and is tried less and less often: %s',
  async (_, { damage, mend }) => {
    const { db } = await openDatabase()
    const sequencer = openSequencer(db)
    await write(db, organizations, 1)
    await sequencer.numberUntil(countsOf(organizations, 1))
    await write(db, organizations, 3)
    await tamper(db, damage)
    const before = (await countEntries(db))[damaged]!
    await sequencer.numberUntil({ ...countsOf(sound, 4), [damaged]: before })
    expect(sequencer.problems).toEqual(['audit_shard_failed: Events of shard 0 get no numbers.'])
    expect(await sequencer.failing()).toBe(1)

    // From now on the others are numbered in one transaction, as before.
    await write(db, sound, 1)
    await sequencer.numberUntil({ ...countsOf(sound, 5), [damaged]: before })
    const { rows } = await sql`
      select distinct xmin::text from audit_log where org_seq = 5`.execute(db)
    expect(rows).toHaveLength(1)
    for (const [passedMs, problems] of [
      [999, 1],
      [1, 2],
      [1999, 2],
      [1, 3],
      [60_000, 4],
      [60_000, 5],
      [60_000, 6],
      [60_000, 7],
      [59_999, 7],
      [1, 8],
    ] as const) {
      sequencer.pass(passedMs)
      await sequencer.retryShards()
      expect(sequencer.problems).toHaveLength(problems)
    }

    await tamper(db, mend)
    sequencer.pass(60_000)
    await sequencer.retryShards()
    await write(db, [damaged], 1)
    await sequencer.numberUntil(countsOf(organizations, 5))
    await expectAllNumbered(db)
    expect([await sequencer.failing(), sequencer.problems.length]).toEqual([0, 8])
  },
  60_000,
)

test('a running worker numbers the other shards, and the damaged one when it is mended', async () => {
  const { db } = await openDatabase()
  const stopping = new AbortController()
  const metrics = createMetrics()
  await write(db, [damaged], 2)
  const { damage, mend } = damages['an event that cannot be written as a record']
  await tamper(db, damage)
  const deps = { db, now: systemClock, log: silentLog, metrics, keys: undefined }
  const working = Promise.all(
    auditLogTasks(deps).map((task) => runTask(task, deps, stopping.signal)),
  )
  try {
    for (const count of [1, 2, 3]) {
      await write(db, sound, 1)
      const counts = countsOf(sound, count)
      await expect.poll(() => countEntries(db), { timeout: 30_000 }).toEqual(counts)
    }
    await tamper(db, mend)
    const counts = { ...countsOf(sound, 3), [damaged]: 2 }
    await expect.poll(() => countEntries(db), { timeout: 60_000 }).toEqual(counts)
    await expectAllNumbered(db)
  } finally {
    stopping.abort()
    await working
  }
}, 120_000)

test('a shard that fails stays one while another worker holds its cursor', async () => {
  const { db } = await openDatabase()
  const sequencer = openSequencer(db)
  await write(db, organizations, 1)
  const { damage, mend } = damages['an event that cannot be written as a record']
  await tamper(db, damage)
  await sequencer.numberUntil(countsOf(sound, 1))
  await tamper(db, mend)
  await db.transaction().execute(async (tx) => {
    await sql`select from audit_cursor where shard = 0 for update`.execute(tx)
    sequencer.pass(1000)
    await sequencer.retryShards()
    expect([await sequencer.failing(), sequencer.problems.length]).toEqual([1, 1])
  })
  sequencer.pass(1000)
  await sequencer.retryShards()
  expect(await sequencer.failing()).toBe(0)
  await sequencer.numberUntil(countsOf(organizations, 1))
})

test('a head that another transaction holds delays its own shard only, and the worker waits briefly', async () => {
  const { db } = await openDatabase()
  const sequencer = openSequencer(db)
  await write(db, organizations, 1)
  await sequencer.numberUntil(countsOf(organizations, 1))
  // Before the transaction: events that are written after its beginning wait for its end anyway.
  await write(db, organizations, 1)
  await db.transaction().execute(async (tx) => {
    await sql`select from audit_head where organization_id = ${damaged} for update`.execute(tx)
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx)
    await sequencer.numberUntil({ ...countsOf(sound, 2), [damaged]: 1 })
    expect(sequencer.problems).toEqual(['audit_shard_failed: Events of shard 0 get no numbers.'])
    const show = { name: 'show', text: `select current_setting('lock_timeout')` }
    const waits = await transactNamed(db, numberingSettings, (other) => other.run(show, []))
    expect(waits).toEqual([['500ms']])
  })
  sequencer.pass(1000)
  await sequencer.retryShards()
  await sequencer.numberUntil(countsOf(organizations, 2))
  await expectAllNumbered(db)
}, 60_000)

test('a database that is away makes no shard fail', async () => {
  const { db, url } = await openDatabase()
  await write(db, organizations, 1)
  const away = connectPatiently({ url, poolSize: 2 })
  const sequencer = openSequencer(away)
  await away.destroy()
  await expect(sequencer.numberEvents()).rejects.toThrow('after calling end')
  expect([await sequencer.failing(), sequencer.problems]).toEqual([0, []])
})

test('a database that takes no changes makes no shard fail', async () => {
  const { db, url } = await openDatabase()
  await write(db, organizations, 1)
  await waitForNews(db, 16)
  const name = new URL(url).pathname.slice(1)
  await sql`alter database ${sql.id(name)} set default_transaction_read_only = on`.execute(db)
  const standby = connectPatiently({ url, poolSize: 2 })
  onTestFinished(() => standby.destroy())
  const sequencer = openSequencer(standby)
  await expect(sequencer.numberEvents()).rejects.toThrow('read-only transaction')
  expect([await sequencer.failing(), sequencer.problems]).toEqual([0, []])
})

test('a log whose day is being dropped makes no shard fail', async () => {
  const { db } = await openDatabase()
  const sequencer = openSequencer(db)
  await write(db, organizations, 1)
  await waitForNews(db, 16)
  await db.transaction().execute(async (tx) => {
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx)
    await sql`lock table audit_log in access exclusive mode`.execute(tx)
    await expect(sequencer.numberEvents()).rejects.toThrow('lock timeout')
  })
  expect([await sequencer.failing(), sequencer.problems]).toEqual([0, []])
  await sequencer.numberUntil(countsOf(organizations, 1))
})

test('a round numbers a limited number of events, and no shard waits for the backlog of another', async () => {
  const { db } = await openDatabase()
  await write(db, [damaged], 3 * batchMax)
  await write(db, sound, 5)
  await waitForNews(db, 16)
  expect(await sequenceEvents(db)).toMatchObject({ events: 62 + 15 * 5, hasMore: true })
  expect(await countEntries(db)).toEqual({ ...countsOf(sound, 5), [damaged]: 62 })
  // A shard alone gets the whole round.
  expect(await sequenceEvents(db)).toMatchObject({ events: batchMax, hasMore: true })
  await numberAllEvents(db)
  await expectAllNumbered(db)
})

/** Until no transaction of another test holds up the numbering. */
async function waitForNews(db: Db, count: number) {
  const find = () => transactNamed(db, {}, (tx) => findShardsWithNews(tx, shards))
  await expect.poll(find, { timeout: 30_000 }).toHaveLength(count)
}

test('a connection that is cut while the worker waits is closed, and every event gets one number', async () => {
  const { db, url } = await openDatabase()
  const problems: Error[] = []
  await write(db, organizations, 2)
  await numberAllEvents(db)
  await write(db, organizations, 2)
  const worker = connectPatiently({ url, poolSize: 1, onProblem: (error) => problems.push(error) })
  onTestFinished(() => worker.destroy())
  const sequencer = openSequencer(worker)
  let numbering: Promise<unknown> = Promise.resolve()
  await db.transaction().execute(async (tx) => {
    await sql`select from audit_head where organization_id = ${damaged} for update`.execute(tx)
    numbering = sequencer.numberEvents()
    await expect.poll(() => cutWaiting(db), { timeout: 30_000 }).toBeGreaterThan(0)
  })
  await numbering
  // On a slow machine an attempt may have given up before it was cut.
  sequencer.pass(1000)
  await sequencer.retryShards()
  await sequencer.numberUntil(countsOf(organizations, 4))
  await expectAllNumbered(db)
  expect(problems.length).toBeGreaterThan(0)
  expect(await sequencer.failing()).toBe(0)
})

/** Ends the connections that wait for a lock. */
async function cutWaiting(db: Db): Promise<number> {
  const { rows } = await sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
  return rows.length
}

test('connections are cut at any moment, and two workers number every event once', async () => {
  const { db, url } = await openDatabase()
  const workers = [1, 2].map(() => connectPatiently({ url, poolSize: 2 }))
  onTestFinished(async () => {
    for (const worker of workers) await worker.destroy()
  })
  let isOver = false
  const working = workers.map(async (worker) => {
    while (!isOver) await sequenceEvents(worker).catch(() => undefined)
  })
  let cut = 0
  for (let round = 0; round < 40; round++) {
    await write(db, organizations, 5)
    await sleep(Math.random() * 20)
    const { rows } = await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'
        and (query like 'begin%' or query like '%audit_%')`.execute(db)
    cut += rows.length
  }
  isOver = true
  await Promise.all(working)
  await numberAllEvents(db)
  await expectAllNumbered(db)
  expect(cut).toBeGreaterThan(10)
}, 60_000)
