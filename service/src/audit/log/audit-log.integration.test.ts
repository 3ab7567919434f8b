import { createPublicKey, verify } from 'node:crypto'

import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { insertEvents } from '#audit/event-store.ts'
import { buildRevisionEvent, operator } from '#audit/event.ts'
import { numberAllEvents } from '#audit/log/testing/number-all-events.ts'
import type { Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'
import { createTestDatabase } from '#testing/test-database.ts'

import { keepTiles } from './keep-tiles.ts'
import { appendLeaves, emptyTree, rootOf } from './merkle.ts'
import { proveInclusion } from './prove-inclusion.ts'
import { sequenceEvents } from './sequence-events.ts'
import { publishKeys, signCheckpoints } from './sign-checkpoints.ts'
import { createSigningKey } from './signing-keys.ts'
import { rootByProof } from './testing/root-by-proof.ts'

const key = createSigningKey({ version: 1, bytes: Buffer.alloc(32, 7) })

async function openDatabase() {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  return database.db
}

const eventOf = (organizationId: string, name: string) =>
  buildRevisionEvent(
    {
      organizationId,
      by: operator,
      action: 'created',
      before: null,
      after: { id: name, object: 'thing' },
    },
    new Date(),
  )

async function write(db: Db, organizationId: string, count: number) {
  const events = Array.from({ length: count }, (_, at) => eventOf(organizationId, `x${at}`))
  for (let at = 0; at < count; at += 2000) await insertEvents(db, events.slice(at, at + 2000))
  return events
}

type Entry = { organizationId: string; orgSeq: number; eventId: string; leaf: Buffer }

async function entriesIn(db: Db) {
  const { rows } = await sql<Entry>`
    select organization_id as "organizationId", org_seq::integer as "orgSeq", event_id as "eventId", leaf
    from audit_log order by organization_id, org_seq`.execute(db)
  return rows
}

async function headOf(db: Db, organizationId: string) {
  const head = await db
    .selectFrom('audit_head')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .executeTakeFirstOrThrow()
  return { ...head, size: Number(head.org_seq), tiledSize: Number(head.tiled_size) }
}

test('every organization counts from one, in the order of commits', async () => {
  const db = await openDatabase()
  const first = await write(db, 'org_1', 3)
  const second = await write(db, 'org_2', 2)
  await numberAllEvents(db)
  const third = await write(db, 'org_1', 1)
  await numberAllEvents(db)
  const entries = await entriesIn(db)
  expect(entries.map(({ organizationId, orgSeq }) => [organizationId, orgSeq])).toEqual([
    ['org_1', 1],
    ['org_1', 2],
    ['org_1', 3],
    ['org_1', 4],
    ['org_2', 1],
    ['org_2', 2],
  ])
  const written = [...first, ...second, ...third].map(({ id }) => id)
  expect(entries.map(({ eventId }) => eventId).toSorted()).toEqual(written.toSorted())
  expect(entries[3]?.eventId).toBe(third[0]?.id)
})

test('workers that number at the same time leave no gap and no number twice', async () => {
  const db = await openDatabase()
  const organizations = Array.from({ length: 20 }, (_, at) => `org_${at}`)
  const writing = Promise.all(organizations.map((id) => write(db, id, 50)))
  const counts: number[] = []
  const work = async () => {
    for (let round = 0; round < 15; round++) counts.push((await sequenceEvents(db)).events)
  }
  await Promise.all([writing, work(), work(), work()])
  await numberAllEvents(db)
  const byOrganization = Map.groupBy(await entriesIn(db), ({ organizationId }) => organizationId)
  expect(byOrganization.size).toBe(20)
  for (const [id, entries] of byOrganization) {
    expect(entries.map(({ orgSeq }) => orgSeq)).toEqual(
      Array.from({ length: 50 }, (_, at) => at + 1),
    )
    const { frontier } = appendLeaves(
      emptyTree,
      entries.map(({ leaf }) => leaf),
    )
    expect((await headOf(db, id)).frontier).toEqual(Buffer.concat(frontier))
  }
})

test('an event of a transaction that commits late comes after those that were numbered', async () => {
  const db = await openDatabase()
  const late = eventOf('org_1', 'late')
  let early = [eventOf('org_1', 'early')]
  await db.transaction().execute(async (tx) => {
    await insertEvents(tx, [late])
    early = await write(db, 'org_1', 1)
    await sequenceEvents(db)
    expect(await entriesIn(db)).toEqual([]) // the early one waits for the transaction that began before it
  })
  await numberAllEvents(db)
  expect((await entriesIn(db)).map(({ eventId }) => eventId)).toEqual([late.id, early[0]?.id])
})

test('checkpoints sign the root, repeat the hash of the one before, and come once a minute', async () => {
  const db = await openDatabase()
  let at = new Date('2026-01-01T00:00:00Z')
  const deps = { db, now: () => at, keys: [key] as const }
  await publishKeys(deps)
  await write(db, 'org_1', 5)
  await numberAllEvents(db)
  expect(await signCheckpoints(deps)).toBe(1)
  await write(db, 'org_1', 2)
  await numberAllEvents(db)
  expect(await signCheckpoints(deps)).toBe(0)
  at = new Date('2025-01-01T00:00:00Z') // a wrong clock makes no difference
  expect(await signCheckpoints(deps)).toBe(0)
  await sql`update audit_head set signed_at = signed_at - interval '1 minute'`.execute(db)
  expect(await signCheckpoints(deps)).toBe(1)
  expect(await signCheckpoints(deps)).toBe(0)
  const [first, second] = await db
    .selectFrom('audit_checkpoint')
    .selectAll()
    .orderBy('size')
    .execute()
  expect([first?.size, second?.size]).toEqual(['5', '7'])
  expect(second?.note).toContain(`\nprevious ${first?.hash.toString('base64')}\n`)
  const leaves = (await entriesIn(db)).map(({ leaf }) => leaf)
  expect(second?.root).toEqual(rootOf(appendLeaves(emptyTree, leaves).frontier))
  expect(isSignedBy(key, second!.note)).toBe(true)
})

function isSignedBy({ publicKey: bytes }: { publicKey: Buffer }, note: string): boolean {
  const [text = '', line = ''] = note.split(/(?<=\n)\n/)
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), bytes])
  const signature = Buffer.from(line.trim().split(' ')[2] ?? '', 'base64').subarray(4)
  const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' })
  return verify(null, Buffer.from(text), publicKey, signature)
}

test('4,096 events are signed before the minute is over', async () => {
  const db = await openDatabase()
  const deps = { db, now: () => new Date('2026-01-01T00:00:00Z'), keys: [key] as const }
  await publishKeys(deps)
  await write(db, 'org_1', 1)
  await numberAllEvents(db)
  await signCheckpoints(deps)
  await write(db, 'org_1', 4096)
  await numberAllEvents(db)
  expect(await signCheckpoints(deps)).toBe(1)
})

test('workers with different keys during a rotation sign one chain, in which every checkpoint verifies', async () => {
  const db = await openDatabase()
  const next = createSigningKey({ version: 2, bytes: Buffer.alloc(32, 8) })
  const now = () => new Date('2026-01-01T00:00:00Z')
  const workers = [
    { db, now, keys: [key, next] as const },
    { db, now, keys: [next, key] as const },
  ]
  await Promise.all(workers.map(publishKeys))
  for (let round = 0; round < 15; round++) {
    await write(db, 'org_1', 1)
    await numberAllEvents(db)
    await sql`update audit_head set signed_at = null`.execute(db)
    const order = round % 2 === 0 ? workers : workers.toReversed()
    await Promise.all([...order, ...order].map(signCheckpoints))
  }
  const checkpoints = await db.selectFrom('audit_checkpoint').selectAll().orderBy('size').execute()
  expect(checkpoints).toHaveLength(15)
  expect(new Set(checkpoints.map((each) => each.key_id))).toEqual(new Set([1, 2]))
  for (const [at, { note, key_id: keyId }] of checkpoints.entries()) {
    const previous = checkpoints[at - 1]?.hash.toString('base64') ?? 'none'
    expect(note).toContain(`\nprevious ${previous}\n`)
    expect(isSignedBy(keyId === 1 ? key : next, note)).toBe(true)
  }
})

test('a key that is replaced stays published, and its number cannot be given to another', async () => {
  const db = await openDatabase()
  const now = () => new Date('2026-01-01T00:00:00Z')
  const next = createSigningKey({ version: 2, bytes: Buffer.alloc(32, 8) })
  await publishKeys({ db, now, keys: [key] })
  await publishKeys({ db, now, keys: [next, key] })
  const keys = await db.selectFrom('audit_key').selectAll().orderBy('id').execute()
  expect(keys.map(({ id, retired_at: retiredAt }) => [id, retiredAt])).toEqual([
    [1, now()],
    [2, null],
  ])
  const other = createSigningKey({ version: 1, bytes: Buffer.alloc(32, 9) })
  await expect(publishKeys({ db, now, keys: [other] })).rejects.toThrow('key 1 is not the one')
})

test.each([0, 1])(
  'every event can be proven, with its leaf in a tile or not (%i)',
  async (isTiled) => {
    const db = await openDatabase()
    await write(db, 'org_1', 1300)
    await numberAllEvents(db)
    if (isTiled) await keepTiles(db)
    const head = await headOf(db, 'org_1')
    expect(head.tiledSize).toBe(isTiled ? 1280 : 0)
    const leaves = (await entriesIn(db)).map(({ leaf }) => leaf)
    for (const size of [1, 2, 255, 256, 257, 700, 1024, 1280, 1300]) {
      const root = rootOf(appendLeaves(emptyTree, leaves.slice(0, size)).frontier)
      for (const orgSeq of new Set(
        [1, 2, 200, 256, 257, 513, 1024, 1299, size].filter((each) => each <= size),
      )) {
        const tree = { size, tiledSize: head.tiledSize }
        const hashes = await proveInclusion(db, 'org_1', orgSeq, tree)
        expect(rootByProof(leaves[orgSeq - 1]!, orgSeq, size, hashes)).toEqual(root)
      }
    }
  },
)

test('an organization whose leaves are missing does not keep others from getting tiles', async () => {
  const db = await openDatabase()
  await write(db, 'org_1', 300)
  await write(db, 'org_2', 300)
  await numberAllEvents(db)
  await transact(db, async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx)
    await sql`delete from audit_log where organization_id = 'org_1' and org_seq = 7`.execute(tx)
  })
  await expect(keepTiles(db)).rejects.toThrow('Leaves of org_1 from 1 to 256 are missing.')
  expect((await headOf(db, 'org_2')).tiledSize).toBe(256)
})
