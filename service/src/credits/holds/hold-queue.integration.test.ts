import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'

import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'

import { connectDatabase, type Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'
import {
  findImbalances,
  holdOf,
  letExpire,
  openOrganization,
  readCredits,
  settlementOf,
  type SomeCall,
} from '#testing/credit-calls.ts'
import { startFaultProxy } from '#testing/fault-proxy.ts'
import { createTestDatabase } from '#testing/test-database.ts'

import { createHoldQueue, type HoldQueue } from './hold-queue.ts'
import { sweepHolds } from './sweep-store.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db
let queue: HoldQueue
beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  queue = createHoldQueue({ db, reserveMaxMs: 20_000 })
})
afterAll(() => database[Symbol.asyncDispose]())

let organizations = 0
let organizationId: string
beforeEach(async () => {
  organizationId = `org_${organizations++}`
  await openOrganization(db, organizationId, 100n)
})
const call = (id: string, amount: bigint, more: Partial<SomeCall> = {}): SomeCall => ({
  organizationId,
  id,
  amount,
  ...more,
})
const reserve = (id: string, amount: bigint, more?: Partial<SomeCall>) =>
  queue.reserve(holdOf(call(id, amount, more)))
const settle = (id: string, amount: bigint, more?: Partial<SomeCall>) =>
  queue.settle(settlementOf(call(id, amount, more)))
const read = () => readCredits(db, organizationId)

test('a hundred at once for a balance of ten: exactly ten are held, the others learn what is left', async () => {
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, index) => reserve(`req_${index}`, 10n)),
  )
  expect(answers.filter(({ isHeld }) => isHeld)).toHaveLength(10)
  expect(answers.find(({ isHeld }) => !isHeld)).toEqual({
    isHeld: false,
    available: 0n,
    held: 100n,
  })
  expect(await read()).toMatchObject({ posted: 100n, held: 100n })
})

test('one that is too large does not spoil the others that came with it', async () => {
  const answers = await Promise.all([
    reserve('a', 10n),
    reserve('b', 95n),
    reserve('c', 10n),
    reserve('d', 500n),
    reserve('e', 80n),
    reserve('f', 1n),
  ])
  expect(answers.map(({ isHeld }) => isHeld)).toEqual([true, false, true, false, true, false])
})

test('what a call costs beyond its hold is written off, however much the balance has', async () => {
  await Promise.all([reserve('long', 10n), reserve('other', 10n)])
  expect(await settle('long', 200n)).toEqual({ charged: 10n, posted: 90n })
  const { entries, posted, used } = await read()
  expect(entries.get('long')).toEqual({ kind: 'usage', amount: 10n })
  expect(entries.get('long:writeoff')).toEqual({ kind: 'writeoff', amount: 190n })
  expect({ posted, used }).toEqual({ posted: 90n, used: 10n })
})

test('settling again charges nothing and tells nothing, at once or later, and whatever it says', async () => {
  await reserve('once', 10n)
  const twice = await Promise.all([settle('once', 4n), settle('once', 5n)])
  expect(twice).toEqual([
    { charged: 4n, posted: 96n },
    { charged: 4n, posted: 96n },
  ])
  expect(await settle('once', 90n)).toEqual({ charged: 4n, posted: 96n })
  expect((await read()).events).toEqual(['once completed'])
})

test('what a settlement sets free can be held by a call that comes with it', async () => {
  await reserve('long', 100n)
  const [next, settled] = await Promise.all([reserve('next', 90n), settle('long', 10n)])
  expect(next).toEqual({ isHeld: true })
  expect(settled).toEqual({ charged: 10n, posted: 90n })
  expect(await read()).toMatchObject({ posted: 90n, held: 90n, used: 10n })
})

test('a call that is settled at the moment it is held is charged from its hold', async () => {
  const [held, settled] = await Promise.all([reserve('short', 10n), settle('short', 4n)])
  expect(held).toEqual({ isHeld: true })
  expect(settled).toEqual({ charged: 4n, posted: 96n })
  expect((await read()).entries.get('short')).toEqual({ kind: 'usage', amount: 4n })
})

test('each item of a statement has its own outcome, whatever stands before it', async () => {
  await Promise.all([reserve('known', 10n), reserve('new', 10n), reserve('over', 5n)])
  await settle('known', 1n)
  const unknown = settle('x', 1n, { organizationId: 'org_none' }).catch(
    (error: Error) => error.message,
  )
  const [again, fresh, over, late, refused, held] = await Promise.all([
    settle('known', 2n),
    settle('new', 3n),
    settle('over', 7n),
    settle('never held', 4n),
    reserve('too much', 1000n),
    reserve('fits', 20n),
  ])
  expect([again, fresh, over, late].map(({ charged }) => charged)).toEqual([1n, 3n, 5n, 4n])
  expect([refused.isHeld, held.isHeld, await unknown]).toEqual([
    false,
    true,
    'org_none has no credit account',
  ])
  const { entries, holds, events, posted } = await read()
  expect([...entries.keys()].toSorted()).toEqual(
    ['first', 'known', 'never held:late', 'new', 'over', 'over:writeoff'].toSorted(),
  )
  expect([...holds]).toEqual([['fits', 20n]])
  expect(events.toSorted()).toEqual(
    ['known', 'never held', 'new', 'over'].map((id) => `${id} completed`),
  )
  expect(posted).toBe(87n)
})

test('a settlement that comes after the sweep is charged late, once', async () => {
  await reserve('late', 10n)
  await letExpire(db, organizationId, 'late')
  expect(await sweepHolds(db)).toBe(1)
  expect(await sweepHolds(db)).toBe(0)
  expect((await read()).entries.get('late')).toEqual({ kind: 'void_unknown', amount: 0n })
  expect(await settle('late', 130n)).toEqual({ charged: 100n, posted: 0n })
  expect(await settle('late', 130n)).toEqual({ charged: 100n, posted: 0n })
  const { entries, events, days } = await read()
  expect(entries.get('late:late')).toEqual({ kind: 'late_usage', amount: 100n })
  expect(entries.get('late:late:writeoff')).toEqual({ kind: 'writeoff', amount: 30n })
  expect(events).toEqual(['late unknown', 'late completed'])
  expect([...days.values()]).toMatchObject([{ requests: 1, credits: 100n }])
})

test('two that settle late at the same moment, in two processes, charge once', async () => {
  const other = createHoldQueue({ db })
  for (let round = 0; round < 20; round++) {
    const settlement = settlementOf(call(`late_${round}`, 3n))
    const both = await Promise.all([queue.settle(settlement), other.settle(settlement)])
    expect(both.map(({ charged }) => charged)).toEqual([3n, 3n])
  }
  expect(await read()).toMatchObject({ used: 60n, posted: 40n })
})

test('whatever stands beside a charge arrives as it was sent, and its event byte by byte', async () => {
  const subject = { projectId: null, keyId: `k"'\\{},\n`, model: '模型 🚂 \\u0000 \\x41 $1' }
  await reserve('odd', 1n, { subject })
  const settlement = settlementOf(call('odd', 1n, { subject }))
  await queue.settle(settlement)
  const one = async (table: 'ledger_entry' | 'event') =>
    (
      await sql<Record<string, unknown>>`
        select * from ${sql.table(table)} where organization_id = ${organizationId}
          and kind::text in ('usage', 'enforcement')`.execute(db)
    ).rows
  expect(await one('ledger_entry')).toMatchObject([{ meta: settlement.meta, project_id: null }])
  const { id, at, shard, header, payload, salt, payloadHash } = settlement.event
  const event = { id, at, shard, header, payload, salt, payload_hash: payloadHash }
  expect(await one('event')).toMatchObject([event])
  expect(createHash('sha256').update(salt).update(payload).digest()).toEqual(payloadHash)
  expect([...(await read()).days.keys()]).toEqual([` ${subject.keyId} ${subject.model}`])
})

test('the sums of a day stand under the UTC day, wherever the session thinks it is', async () => {
  // In one of the two it is another day at any time.
  for (const zone of ['Pacific/Kiritimati', 'Etc/GMT+12']) {
    const url = new URL(database.url)
    url.searchParams.set('options', `-c TimeZone=${zone}`)
    const abroad = connectDatabase({ url: url.toString(), poolSize: 1 })
    const settlement = settlementOf(call(zone, 1n))
    expect((await sql`show TimeZone`.execute(abroad)).rows).toEqual([{ TimeZone: zone }])
    await createHoldQueue({ db: abroad }).settle(settlement)
    await abroad.destroy()
  }
  expect(await findImbalances(db)).toEqual([])
})

test('rows are found by their keys, also on a connection that found the tables empty', async () => {
  await using own = await createTestDatabase()
  const single = connectDatabase({ url: own.url, poolSize: 1 })
  const readScans = async () => {
    await sql`select pg_stat_force_next_flush()`.execute(single)
    const { rows } = await sql<Record<string, string>>`
      select relname, seq_scan, idx_scan from pg_stat_user_tables
      where relname in ('credit_account', 'credit_hold', 'ledger_entry', 'usage_day')
      order by relname`.execute(single)
    return rows
  }
  await openOrganization(single, 'org_1', 1_000_000n)
  const before = await readScans()
  const alone = createHoldQueue({ db: single, reserveMaxMs: 20_000 })
  for (const size of [1, 1, 1, 1, 1, 1, 1, 100]) {
    const calls = Array.from({ length: size }, (_, index) => ({
      organizationId: 'org_1',
      id: `req_${size}_${index}_${Math.random()}`,
      amount: 1n,
    }))
    await Promise.all(calls.map((each) => alone.reserve(holdOf(each))))
    await Promise.all(calls.map((each) => alone.settle(settlementOf(each))))
  }
  const after = await readScans()
  await single.destroy()
  const scans = (rows: typeof after) => rows.map((row) => [row['relname'], row['seq_scan']])
  expect(scans(after)).toEqual(scans(before))
  const keyed = (rows: typeof after) =>
    Number(rows.find((row) => row['relname'] === 'credit_hold')!['idx_scan'])
  expect(keyed(after) - keyed(before)).toBeGreaterThanOrEqual(2 * 107)
})

test('an organization without an account is an error, for itself only', async () => {
  const [unknown, known] = await Promise.allSettled([
    reserve('a', 1n, { organizationId: 'org_none' }),
    reserve('a', 1n),
  ])
  expect(unknown).toMatchObject({ status: 'rejected', reason: { message: /no credit account/ } })
  expect(known).toMatchObject({ status: 'fulfilled', value: { isHeld: true } })
  await expect(settle('a', 1n, { organizationId: 'org_none' })).rejects.toThrow(/no credit account/)
})

test('an id that is held with another amount is an error', async () => {
  await reserve('a', 1n)
  expect(await reserve('a', 1n)).toEqual({ isHeld: true })
  await expect(reserve('a', 2n)).rejects.toThrow(/another amount/)
  expect(await read()).toMatchObject({ held: 1n })
})

test('what the database cannot take fails alone', async () => {
  const subject = { projectId: null, keyId: 'key_1', model: '\u0000' }
  const holds = await Promise.allSettled([reserve('a', 1n, { subject }), reserve('b', 1n)])
  expect(holds.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
  const settled = await Promise.allSettled([settle('b', 1n), settle('c', 1n, { subject })])
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  expect(await read()).toMatchObject({ used: 1n, held: 0n })
})

test('an answer that is lost on its way: the second attempt finds what the first has done', async () => {
  await using proxy = await startFaultProxy({ port: portOf(database.url), seed: 1 })
  const url = new URL(database.url)
  url.port = new URL(proxy.url).port
  const proxied = connectDatabase({ url: url.toString(), poolSize: 1 })
  const beside = createHoldQueue({ db: proxied, reserveMaxMs: 20_000 })
  const loseOne = async <T>(work: () => Promise<T>) => {
    await sql`select 1`.execute(proxied)
    const before = proxy.met.reset
    proxy.set({ reset: 1 })
    const result = work()
    while (proxy.met.reset === before) await nextTurn()
    proxy.set()
    return result
  }
  const [hold, settlement] = [holdOf(call('a', 10n)), settlementOf(call('a', 4n))]
  expect(await loseOne(() => beside.reserve(hold))).toEqual({ isHeld: true })
  expect(await read()).toMatchObject({ held: 10n })
  expect(await loseOne(() => beside.settle(settlement))).toEqual({ charged: 4n, posted: 96n })
  expect(await read()).toMatchObject({ posted: 96n, used: 4n, held: 0n, events: ['a completed'] })
  await proxied.destroy()
})

/** Stands before the database; can hang up on clients without the database taking notice. */
async function startRelay() {
  const clients = new Set<Socket>()
  const server = createServer((client) => {
    const behind = connect(portOf(database.url), '127.0.0.1')
    for (const socket of [client, behind]) socket.on('error', () => undefined)
    behind.pipe(client)
    client.on('data', (piece) => behind.write(piece))
    clients.add(client)
    closing.push(() => behind.destroy())
  }).listen(0, '127.0.0.1')
  const closing: (() => void)[] = []
  await once(server, 'listening')
  const url = new URL(database.url)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.toString(),
    connections: () => clients.size,
    hangUp: () => clients.forEach((client) => client.destroy()),
    [Symbol.asyncDispose]: async () => {
      for (const close of closing) close()
      server.close()
    },
  }
}

test('an attempt that went on after its connection was cut is found, not refused for want of what it holds', async () => {
  await using relay = await startRelay()
  const relayed = connectDatabase({ url: relay.url, poolSize: 1 })
  const beside = createHoldQueue({ db: relayed, reserveMaxMs: 20_000 })
  const unlock = await lockAccount()
  const reserving = beside.reserve(holdOf(call('all', 100n)))
  await statementsWait(1)
  relay.hangUp()
  await statementsWait(2)
  await unlock()
  expect(await reserving).toEqual({ isHeld: true })
  expect(relay.connections()).toBe(2)
  expect(await read()).toMatchObject({ held: 100n })
  await relayed.destroy()
})

test('a hold whose outcome is never learned is let go of', async () => {
  await using relay = await startRelay()
  const relayed = connectDatabase({ url: relay.url, poolSize: 1 })
  const beside = createHoldQueue({ db: relayed, reserveMaxMs: 20_000 })
  const unlock = await lockAccount()
  const reserving = beside.reserve(holdOf(call('unknown', 60n)))
  for (const attempt of [1, 2]) {
    await statementsWait(attempt)
    relay.hangUp()
  }
  await expect(reserving).rejects.toThrow('Connection terminated')
  await statementsWait(3)
  await unlock()
  await waitUntil(async () => (await statementsThatWait()) === 0)
  await relayed.destroy()
  expect(await read()).toMatchObject({ posted: 100n, held: 0n, holds: new Map(), events: [] })
  expect([...(await read()).entries.keys()]).toEqual(['first'])
})

async function statementsThatWait() {
  const { rows } = await sql`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
  `.execute(db)
  return rows.length
}
const statementsWait = (count: number) =>
  vi.waitUntil(async () => (await statementsThatWait()) === count, { timeout: 1500 })

/** Locks the account until events otherwise. */
async function lockAccount() {
  const [locked, unlocking] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const locking = transact(db, async (tx) => {
    await sql`
      select from credit_account where organization_id = ${organizationId} for update`.execute(tx)
    locked.resolve()
    await unlocking.promise
  })
  await locked.promise
  return async () => {
    unlocking.resolve()
    await locking
  }
}

const portOf = (url: string) => Number(new URL(url).port || 5432)

test('503 when nothing can be held in time; who waited behind it has not begun, and what came too late is let go of', async () => {
  const hurried = createHoldQueue({ db, reserveMaxMs: 200 })
  const unlock = await lockAccount()
  const first = hurried.reserve(holdOf(call('first', 60n)))
  const second = nextTurn()
    .then(nextTurn)
    .then(() => hurried.reserve(holdOf(call('second', 60n))))
  for (const each of [first, second]) await expect(each).rejects.toMatchObject({ status: 503 })
  await unlock()
  // Comes after the first, which no caller wanted any more when it was held.
  expect(await hurried.reserve(holdOf(call('third', 1n)))).toEqual({ isHeld: true })
  await waitUntil(async () => (await read()).held === 1n)
  expect(await hurried.reserve(holdOf(call('fourth', 60n)))).toEqual({ isHeld: true })
  const { holds, entries, events } = await read()
  expect([...holds.keys()].toSorted()).toEqual(['fourth', 'third'])
  expect(events).toEqual([])
  expect([...entries.keys()]).toEqual(['first'])
})

test('the sweep passes by an account that is locked, and comes back for it', async () => {
  const other = `${organizationId}_other`
  await openOrganization(db, other, 100n)
  await Promise.all([reserve('a', 10n), reserve('b', 10n, { organizationId: other })])
  await letExpire(db, organizationId, 'a')
  await letExpire(db, other, 'b')
  const unlock = await lockAccount()
  expect(await sweepHolds(db, 1)).toBe(1)
  expect(await sweepHolds(db, 1)).toBe(0)
  expect((await readCredits(db, other)).held).toBe(0n)
  expect((await read()).held).toBe(10n)
  await unlock()
  expect(await sweepHolds(db, 1)).toBe(1)
  expect((await read()).held).toBe(0n)
})

test('after all of this every balance is what its ledger says', async () => {
  expect(await findImbalances(db)).toEqual([])
})
