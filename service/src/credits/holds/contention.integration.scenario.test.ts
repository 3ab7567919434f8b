import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'

import type { Db } from '#platform/database.ts'
import {
  findImbalances,
  holdOf,
  letExpire,
  openOrganization,
  postOnce,
  settlementOf,
} from '#testing/credit-calls.ts'
import { createRandom } from '#testing/fault-proxy.ts'
import { connectPatiently, createTestDatabase } from '#testing/test-database.ts'

import { createHoldQueue } from './hold-queue.ts'
import { sweepHolds } from './sweep-store.ts'

// Several processes at the same accounts. Each store has a pool of its own.

const seed = Number(process.env['CREDIT_SEED'] ?? Date.now() % 2 ** 31)
const stores = 4
const workers = 16

let database: Awaited<ReturnType<typeof createTestDatabase>>
let pools: Db[]
beforeEach(async () => {
  database = await createTestDatabase()
  pools = Array.from({ length: stores }, () => connectPatiently({ url: database.url, poolSize: 4 }))
  console.log(`seed ${seed}`)
})
afterEach(async () => {
  await Promise.all(pools.map((db) => db.destroy()))
  await database[Symbol.asyncDispose]()
})

const createStores = () => pools.map((db) => createHoldQueue({ db, reserveMaxMs: 20_000 }))

/** Each store has its workers, each worker its random numbers. */
async function work(
  each: (at: { store: number; worker: number; random: () => number }) => Promise<void>,
) {
  const places = Array.from({ length: stores * workers }, (_, index) => index)
  await Promise.all(
    places.map((index) =>
      each({ store: index % stores, worker: index, random: createRandom(seed + index) }),
    ),
  )
}

test('four processes at an account near zero: nothing is promised twice, and nothing fails', async () => {
  await openOrganization(database.db, 'org_1', 60n)
  const met = { held: 0, refused: 0, least: 60n }
  const all = createStores()
  const poll = async () => {
    const { rows } = await sql<{ available: string }>`
      select posted - held as available from credit_account`.execute(database.db)
    const available = BigInt(rows[0]!.available)
    if (available < met.least) met.least = available
  }
  await work(async ({ store, worker, random }) => {
    for (let round = 0; round < 15; round++) {
      const call = { organizationId: 'org_1', id: `req_${worker}_${round}` }
      const amount = BigInt(1 + Math.floor(random() * 9))
      const { isHeld } = await all[store]!.reserve(holdOf({ ...call, amount }))
      met[isHeld ? 'held' : 'refused']++
      const used = BigInt(Math.floor(random() * 10))
      if (isHeld) await all[store]!.settle(settlementOf({ ...call, amount: used }))
      const lost = settlementOf({ ...call, id: `lost_${worker}_${round}`, amount: 3n })
      if (random() < 0.3) await all[store]!.settle(lost)
      if (worker === 0) await poll()
      const more = { id: `more_${worker}_${round}`, kind: 'grant', amount: 12n }
      if (random() < 0.2) await postOnce(pools[store]!, 'org_1', more)
    }
  })
  console.log(met)
  expect(met.least).toBeGreaterThanOrEqual(0n)
  expect(Math.min(met.held, met.refused)).toBeGreaterThan(100)
  expect(await findImbalances(database.db)).toEqual([])
}, 120_000)

test('holding, settling and sweeping at overlapping organizations: none waits for ever', async () => {
  const organizations = Array.from({ length: 12 }, (_, index) => `org_${index}`)
  for (const id of organizations) await openOrganization(database.db, id, 1_000_000n)
  const all = createStores()
  const met = { settled: 0, swept: 0 }
  const isWorking = { yes: true }
  const sweeping = [0, 1].map(async (index) => {
    while (isWorking.yes) met.swept += await sweepHolds(pools[index]!, 20)
  })
  await work(async ({ store, worker, random }) => {
    for (let round = 0; round < 15; round++) {
      // In any order: it is for the statements to lock in the right one.
      const calls = Array.from({ length: 4 }, (_, index) => ({
        organizationId: organizations[Math.floor(random() * organizations.length)]!,
        id: `req_${worker}_${round}_${index}`,
        amount: 5n,
      }))
      await Promise.all(calls.map((call) => all[store]!.reserve(holdOf(call))))
      const [expired, ...others] = calls
      await letExpire(pools[store]!, expired!.organizationId, expired!.id)
      await Promise.all(others.map((call) => all[store]!.settle(settlementOf(call))))
      if (random() < 0.5) await all[store]!.settle(settlementOf(expired!))
      met.settled += others.length
    }
  })
  isWorking.yes = false
  await Promise.all(sweeping)
  while ((await sweepHolds(database.db)) > 0);
  const { rows } = await sql<{ deadlocks: string }>`
    select deadlocks from pg_stat_database where datname = current_database()`.execute(database.db)
  const { rows: entries } = await sql`
    select kind, count(*)::integer from ledger_entry group by kind order by kind`.execute(
    database.db,
  )
  console.log(met, rows, entries)
  expect(rows).toEqual([{ deadlocks: '0' }])
  expect(met.settled).toBe(stores * workers * 15 * 3)
  expect(met.swept).toBeGreaterThan(100)
  expect(await findImbalances(database.db)).toEqual([])
}, 120_000)
