import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'

import type { Db } from '#platform/database.ts'
import { createMetrics } from '#platform/metrics.ts'
import { transact } from '#platform/transaction.ts'
import { silentLog } from '#testing/silent-log.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import { createTestClock } from '#testing/test-gateway.ts'

import { createAnnouncer } from './announce.ts'
import { insertChange, readChanges, sweepChanges } from './change-store.ts'
import { operator } from './event.ts'
import { followChanges } from './follow-changes.ts'

let db: Db
const clock = createTestClock()
beforeEach(async () => {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  db = database.db
})

const change = (objectId: string) =>
  ({ organizationId: 'org_1', kind: 'api_key', objectId }) as const

const announcement = (id: string) =>
  ({
    organizationId: 'org_1',
    by: operator,
    action: 'deleted',
    before: { id, object: 'organization.admin_api_key' },
    after: null,
    notifies: 'api_key',
  }) as const

const write = (objectId: string) =>
  transact(db, (tx) => insertChange(tx, change(objectId), clock.now()))

async function follow({ pollMs = 20, pageRows = 1000 } = {}) {
  const seen: string[] = []
  let gaps = 0
  const follower = followChanges({
    db,
    pollMs,
    pageRows,
    now: clock.now,
    log: silentLog,
    metrics: createMetrics(),
    subscribers: [{ onChange: ({ objectId }) => seen.push(objectId), onGap: () => gaps++ }],
  })
  onTestFinished(() => follower.stop())
  await waitUntil(follower.lastPollAt)
  return { follower, seen, gaps: () => gaps }
}

const polled = (ms = 150) => new Promise((resolve) => setTimeout(resolve, ms))

test('changes arrive once each, in order', async () => {
  const { seen } = await follow()
  for (const id of ['a', 'b', 'c']) await write(id)
  await waitUntil(() => seen.length >= 3)
  await polled()
  expect(seen).toEqual(['a', 'b', 'c'])
})

test('a change is announced only if its transaction commits, and the hint comes after the commit', async () => {
  const { seen } = await follow()
  let isVisibleAtHint: unknown
  const announce = createAnnouncer(clock.now, () => {
    isVisibleAtHint = readChanges(db, { xid: '0', seq: '0' }, 10)
  })
  const failing = transact(db, async (tx) => {
    await announce(tx, announcement('undone'))
    throw new Error('rolled back')
  })
  await expect(failing).rejects.toThrow('rolled back')
  expect(isVisibleAtHint).toBeUndefined()
  await transact(db, (tx) => announce(tx, announcement('done')))
  expect(await isVisibleAtHint).toMatchObject([{ objectId: 'done' }])
  await waitUntil(() => seen.length > 0)
  expect(seen).toEqual(['done'])
})

/** A transaction that has written its row and waits until it is to commit. */
async function begin(objectId: string) {
  const commit = Promise.withResolvers<void>()
  const written = Promise.withResolvers<void>()
  const done = transact(db, async (tx) => {
    await insertChange(tx, change(objectId), clock.now())
    written.resolve()
    await commit.promise
  })
  await written.promise
  return async () => {
    commit.resolve()
    await done
  }
}

test('a transaction that commits late is not missed, and delays no other change', async () => {
  const { seen } = await follow()
  const commitSlow = await begin('slow')
  await write('quick')
  await waitUntil(() => seen.includes('quick'))
  await polled()
  expect(seen).toEqual(['quick']) // delivered before it is settled, and only once
  await commitSlow()
  await waitUntil(() => seen.includes('slow'))
  await polled()
  expect(seen).toEqual(['quick', 'slow'])
})

test('a plain cursor would have missed it', async () => {
  const commitSlow = await begin('slow')
  await write('quick')
  const first = await readChanges(db, { xid: '0', seq: '0' }, 10)
  const last = first.at(-1)
  await commitSlow()
  const { rows } = await sql`
    select 1 from config_change where seq > ${last?.seq}::bigint`.execute(db)
  expect([first.map(({ objectId }) => objectId), rows]).toEqual([['quick'], []])
})

test('many writers at once, small pages: every change exactly once', async () => {
  const { seen } = await follow({ pageRows: 7 })
  const names = Array.from({ length: 300 }, (_, index) => `change-${index}`)
  await Promise.all(
    names.map(async (name) => {
      const commit = await begin(name)
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 30))
      await commit()
    }),
  )
  await vi.waitUntil(() => seen.length >= names.length, { timeout: 10_000 })
  await polled()
  expect(seen.toSorted((one, two) => (one < two ? -1 : 1))).toEqual(
    names.toSorted((one, two) => (one < two ? -1 : 1)),
  )
})

test('a wake brings the next poll forward', async () => {
  const { follower, seen } = await follow({ pollMs: 60_000 })
  await write('hinted')
  follower.wake()
  await waitUntil(() => seen.length > 0)
  expect(seen).toEqual(['hinted'])
})

test('a process that has not polled for half the retention drops its caches', async () => {
  const { seen, gaps } = await follow()
  const before = gaps()
  clock.pass(13 * 60 * 60 * 1000)
  await waitUntil(() => gaps() > before)
  await write('after')
  await waitUntil(() => seen.length > 0)
  expect(seen).toEqual(['after'])
})

test('old changes are swept in batches, young ones stay', async () => {
  for (const id of ['a', 'b', 'c']) await write(id)
  const cut = new Date(clock.now().getTime() + 1)
  clock.pass(1000)
  await write('young')
  expect(await transact(db, (tx) => sweepChanges(tx, cut, 2))).toBe(2)
  expect(await transact(db, (tx) => sweepChanges(tx, cut, 2))).toBe(1)
  const left = await db.selectFrom('config_change').select('object_id').execute()
  expect(left).toEqual([{ object_id: 'young' }])
})
