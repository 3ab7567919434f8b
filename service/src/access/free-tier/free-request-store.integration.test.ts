import { randomBytes, randomInt } from 'node:crypto'

import { expect, onTestFinished, test } from 'vitest'

import type { Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'
import { createRandom } from '#testing/fault-proxy.ts'
import { connectPatiently, createTestDatabase } from '#testing/test-database.ts'

import {
  claimFreeRequest,
  wholeInternet,
  findFreeRefusal,
  type FreeClaim,
  releaseFreeRequest,
  sweepFreeRequests,
} from './free-request-store.ts'

const noon = new Date('2026-06-01T12:00:00Z')
const dayMs = 24 * 60 * 60 * 1000
const anIdentity = () => randomBytes(32)
let requests = 0

const claimBy = (identity: Buffer | Buffer[], given: Partial<FreeClaim> = {}): FreeClaim => ({
  identities: [identity].flat(),
  requestId: `req_${++requests}`,
  now: noon,
  counters: [{ network: wholeInternet, max: 1000 }],
  ...given,
})
const claim = (db: Db, given: FreeClaim) => transact(db, (tx) => claimFreeRequest(tx, given))
const release = (db: Db, given: FreeClaim) => transact(db, (tx) => releaseFreeRequest(tx, given))

/** As many processes, each with connections of its own. */
async function openDatabase(pools = 4) {
  const database = await createTestDatabase()
  const dbs = Array.from({ length: pools }, () =>
    connectPatiently({ url: database.url, poolSize: 5 }),
  )
  onTestFinished(async () => {
    await Promise.all(dbs.map((each) => each.destroy()))
    await database[Symbol.asyncDispose]()
  })
  const pick = (index: number) => dbs[index % dbs.length]!
  return { db: database.db, pick }
}

const tally = (outcomes: readonly string[]) =>
  Object.fromEntries(
    Object.entries(Object.groupBy(outcomes, (each) => each)).map(([name, all]) => [
      name,
      all?.length,
    ]),
  )

async function usedOf(db: Db, network = wholeInternet) {
  const rows = await db
    .selectFrom('free_budget')
    .selectAll()
    .where('network', '=', network)
    .execute()
  return rows.reduce((sum, { used }) => sum + used, 0)
}

test('of a hundred claims of one caller at once, through four pools, one is granted', async () => {
  const { db, pick } = await openDatabase()
  const identity = anIdentity()
  const outcomes = await Promise.all(
    Array.from({ length: 100 }, (_, index) => claim(pick(index), claimBy(identity))),
  )
  expect(tally(outcomes)).toEqual({ claimed: 1, used: 99 })
  expect(await usedOf(db)).toBe(1)
  expect(await db.selectFrom('free_request').selectAll().execute()).toHaveLength(1)
})

test('many callers at once never exceed a budget, and refused claims leave no row', async () => {
  const { db, pick } = await openDatabase()
  const counters = [{ network: wholeInternet, max: 7 }]
  const outcomes = await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      claim(pick(index), claimBy(anIdentity(), { counters })),
    ),
  )
  expect(tally(outcomes)).toEqual({ claimed: 7, budget_spent: 93 })
  expect(await usedOf(db)).toBe(7)
  expect(await db.selectFrom('free_request').selectAll().execute()).toHaveLength(7)
})

test('neighbours share the budgets of their networks; a refusal increments none of them', async () => {
  const { db, pick } = await openDatabase()
  const [wide, near, far] = [anIdentity(), anIdentity(), anIdentity()]
  const within = (network: Buffer) => [
    { network: wide, max: 6 },
    { network, max: 4 },
    { network: wholeInternet, max: 1000 },
  ]
  const outcomes = await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      claim(pick(index), claimBy(anIdentity(), { counters: within(index % 2 ? near : far) })),
    ),
  )
  expect(tally(outcomes)).toEqual({ claimed: 6, budget_spent: 54 })
  const [ofNear, ofFar] = [await usedOf(db, near), await usedOf(db, far)]
  expect(ofNear + ofFar).toBe(6)
  expect(Math.max(ofNear, ofFar)).toBeLessThanOrEqual(4)
  expect([await usedOf(db, wide), await usedOf(db)]).toEqual([6, 6])
})

test('processes with different master keys, in any order, grant one caller one request', async () => {
  const { db, pick } = await openDatabase()
  for (let round = 0; round < 10; round++) {
    const [first, second] = [anIdentity(), anIdentity()]
    const known = [[first], [first, second], [second, first]]
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        claim(pick(index), claimBy(known[index % known.length]!)),
      ),
    )
    expect(tally(outcomes)).toEqual({ claimed: 1, used: 11 })
  }
  expect(await usedOf(db)).toBe(10)
})

test('the next day has a budget of its own, but no caller gets a second request', async () => {
  const { db } = await openDatabase(1)
  const counters = [{ network: wholeInternet, max: 1 }]
  const today = claimBy(anIdentity(), { counters })
  const tomorrow = { counters, now: new Date(noon.getTime() + dayMs / 2) }
  expect(await claim(db, today)).toBe('claimed')
  expect(await claim(db, claimBy(anIdentity(), { counters }))).toBe('budget_spent')
  expect(await claim(db, claimBy([...today.identities], tomorrow))).toBe('used')
  expect(await claim(db, claimBy(anIdentity(), tomorrow))).toBe('claimed')
})

test('a refusal can be predicted, and the check writes nothing', async () => {
  const { db } = await openDatabase(1)
  const counters = [
    { network: anIdentity(), max: 5 },
    { network: wholeInternet, max: 1 },
  ]
  const one = claimBy(anIdentity(), { counters })
  expect(await findFreeRefusal(db, one)).toBeNull()
  expect(await db.selectFrom('free_budget').selectAll().execute()).toEqual([])
  await claim(db, one)
  expect(await findFreeRefusal(db, one)).toBe('used')
  expect(await findFreeRefusal(db, claimBy(anIdentity(), { counters }))).toBe('budget_spent')
  const more = { counters: [{ network: wholeInternet, max: 2 }] }
  expect(await findFreeRefusal(db, claimBy(anIdentity(), more))).toBeNull()
})

test('a budget of zero grants nothing', async () => {
  const { db } = await openDatabase(1)
  const none = claimBy(anIdentity(), { counters: [{ network: wholeInternet, max: 0 }] })
  expect(await claim(db, none)).toBe('budget_spent')
  expect(await db.selectFrom('free_request').selectAll().execute()).toEqual([])
})

test('a release gives back the request, and only its own; the budget stays used', async () => {
  const { db } = await openDatabase(1)
  const mine = claimBy([anIdentity(), anIdentity()], {
    counters: [{ network: wholeInternet, max: 2 }],
  })
  const again = { ...mine, requestId: 'req_again' }
  await claim(db, mine)
  await release(db, { ...mine, requestId: 'req_of_somebody_else' })
  expect(await claim(db, again)).toBe('used')
  await release(db, mine)
  expect(await claim(db, again)).toBe('claimed')
  await release(db, mine) // of the first request: the second keeps its claim
  expect([await usedOf(db), await findFreeRefusal(db, mine)]).toEqual([2, 'used'])
})

test('concurrent claims and releases in any order: the budget bounds the number of all claims', async () => {
  const seed = Number(process.env['FREE_REQUEST_SEED'] ?? randomInt(2 ** 31))
  console.log(`seed ${seed}`)
  const dice = createRandom(seed)
  const random = (below: number) => Math.floor(dice() * below)
  const { db, pick } = await openDatabase()
  const callers = Array.from({ length: 6 }, anIdentity)
  const counters = [
    { network: anIdentity(), max: 50 },
    { network: wholeInternet, max: 40 },
  ]
  let claimed = 0
  await Promise.all(
    Array.from({ length: 16 }, async (_, worker) => {
      for (let step = 0; step < 15; step++) {
        const mine = claimBy(callers[random(callers.length)]!, { counters })
        if ((await claim(pick(worker), mine)) !== 'claimed') continue
        claimed++
        if (random(8) > 0) await release(pick(worker + 1), mine)
      }
    }),
  )
  expect(claimed).toBeGreaterThan(6)
  expect([await usedOf(db), await usedOf(db, counters[0]!.network)]).toEqual([claimed, claimed])
  expect(claimed).toBeLessThanOrEqual(40)
}, 30_000)

test('old rows are deleted in batches; rows that still count stay', async () => {
  const { db } = await openDatabase(1)
  const at = (daysAgo: number) => ({ now: new Date(noon.getTime() - daysAgo * dayMs) })
  for (const daysAgo of [91, 92, 93, 89, 4, 0]) await claim(db, claimBy(anIdentity(), at(daysAgo)))
  const sweep = () => transact(db, (tx) => sweepFreeRequests(tx, noon, 2))
  expect([await sweep(), await sweep(), await sweep(), await sweep()]).toEqual([2, 2, 1, 0])
  expect(await db.selectFrom('free_request').selectAll().execute()).toHaveLength(3)
  const days = await db
    .selectFrom('free_budget')
    .select(({ cast, ref }) => cast<string>(ref('day'), 'text').as('day'))
    .execute()
  expect(days).toEqual([{ day: '2026-06-01' }])
})
