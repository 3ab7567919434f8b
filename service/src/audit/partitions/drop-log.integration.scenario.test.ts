import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { insertEvents } from '#audit/event-store.ts'
import { buildRevisionEvent, operator } from '#audit/event.ts'
import { keepTiles } from '#audit/log/keep-tiles.ts'
import { appendLeaves, emptyTree, rootOf } from '#audit/log/merkle.ts'
import { proveInclusion } from '#audit/log/prove-inclusion.ts'
import { sequenceEvents } from '#audit/log/sequence-events.ts'
import { numberAllEvents } from '#audit/log/testing/number-all-events.ts'
import { rootByProof } from '#audit/log/testing/root-by-proof.ts'
import { type Db, isLockTimeout } from '#platform/database.ts'
import { connectPatiently, createTestDatabase } from '#testing/test-database.ts'

import { dropOldLogPartition } from './partition-store.ts'

const entries = sizeOf({ usual: 300_000, long: 1_000_000, variable: 'AUDIT_DROPPED_ENTRIES' })

async function write(db: Db, organizationId: string, count: number) {
  const change = { by: operator, action: 'created', before: null } as const
  const events = Array.from({ length: count }, (_, at) =>
    buildRevisionEvent(
      { ...change, organizationId, after: { id: `x${at}`, object: 'thing' } },
      new Date(),
    ),
  )
  await insertEvents(db, events)
}

/** Makes the first 600 entries of org_1 forty days old, among many of another organization that are all in tiles. */
async function age(db: Db) {
  await db.transaction().execute(async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx)
    await sql`select make_audit_log_partition((now() at time zone 'UTC')::date - 40)`.execute(tx)
    await sql`
      update audit_log set day = day - 40 where organization_id = 'org_1' and org_seq <= 600`.execute(
      tx,
    )
    await sql`
      insert into audit_log (day, organization_id, org_seq, event_day, event_id, leaf)
      select (now() at time zone 'UTC')::date - 40, 'org_2', number, current_date - 40, gen_random_uuid(), sha256('')
      from generate_series(1, ${entries}::integer) as number`.execute(tx)
    await sql`
      insert into audit_head (organization_id, org_seq, day, frontier, tiled_size)
      values ('org_2', ${entries}, current_date, '', ${entries})`.execute(tx)
  })
}

function rethrowUnlessLockTimeout(error: unknown) {
  if (!isLockTimeout(error)) throw error
}

/** Numbers events until `work` is done. Returns how many writes began and ended meanwhile, and the longest. */
async function writeDuring(db: Db, work: () => Promise<void>) {
  let isDone = false
  const working = work().finally(() => (isDone = true))
  const times: number[] = []
  while (!isDone) {
    const startedMs = performance.now()
    await write(db, 'org_3', 1)
    // The worker does not wait for long while the day is detached, and numbers the event later.
    await sequenceEvents(db).catch(rethrowUnlessLockTimeout)
    if (!isDone) times.push(performance.now() - startedMs)
  }
  await working
  return { writes: times.length, longestMs: Math.max(0, ...times) }
}

test(`a day with ${entries} entries is dropped beside writers, and later events can still be proven`, async () => {
  await using database = await createTestDatabase()
  const db = connectPatiently({ url: database.url, poolSize: 4, statementTimeoutMs: 120_000 })
  await write(db, 'org_1', 700)
  await numberAllEvents(db)
  await keepTiles(db)
  const { rows } = await sql<{ leaf: Buffer }>`
    select leaf from audit_log where organization_id = 'org_1' order by org_seq`.execute(db)
  const leaves = rows.map(({ leaf }) => leaf)
  await age(db)
  const startedMs = performance.now()
  const dropped: (string | undefined)[] = []
  const { writes, longestMs } = await writeDuring(db, async () => {
    dropped.push(await dropOldLogPartition(db, 30))
  })
  console.log(
    `${entries} entries dropped in ${Math.round(performance.now() - startedMs)} ms; meanwhile ${writes} writes, the longest ${Math.round(longestMs)} ms`,
  )
  expect(dropped).toEqual([expect.stringMatching(/^audit_log_\d{8}$/)])
  expect(writes).toBeGreaterThan(0)
  const { rows: left } = await sql<{ first: number }>`
    select min(org_seq)::integer as first from audit_log where organization_id = 'org_1'`.execute(
    db,
  )
  expect(left).toEqual([{ first: 601 }])
  // Leaves 513 to 600 are in no complete tile.
  const root = rootOf(appendLeaves(emptyTree, leaves).frontier)
  for (const orgSeq of [1, 256, 300, 513, 550, 600, 601, 650, 700]) {
    const hashes = await proveInclusion(db, 'org_1', orgSeq, { size: 700, tiledSize: 512 })
    expect(rootByProof(leaves[orgSeq - 1]!, orgSeq, 700, hashes)).toEqual(root)
  }
  // The next tile is made of leaves that were kept and leaves that are still there.
  await write(db, 'org_1', 100)
  await numberAllEvents(db)
  await keepTiles(db)
  const hashes = await proveInclusion(db, 'org_1', 550, { size: 700, tiledSize: 768 })
  expect(rootByProof(leaves[549]!, 550, 700, hashes)).toEqual(root)
  await db.destroy()
}, 300_000)
