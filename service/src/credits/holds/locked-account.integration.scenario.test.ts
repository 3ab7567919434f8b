import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { connectDatabase, type Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'
import { findImbalances, holdOf, openOrganization, settlementOf } from '#testing/credit-calls.ts'
import { createTestDatabase } from '#testing/test-database.ts'

import { holdPool } from './hold-pool.ts'
import { createHoldQueue, type HoldQueue } from './hold-queue.ts'

// Another session holds some accounts locked for three seconds, while all organizations are busy in two
// processes. Their pools are as large and as impatient as those that calls are paid with.

const lockedMs = 3000
const workersEach = 4
const healthy = Array.from({ length: 20 }, (_, index) => `org_healthy_${index}`)

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db
let pools: Db[]
beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  const { url } = database
  pools = [0, 1].map(() => connectDatabase({ url, ...holdPool }))
  for (const id of healthy) await openOrganization(db, id, 1_000_000n)
})
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.destroy()))
  await database[Symbol.asyncDispose]()
})

/** How each hold and each settlement went, and when. */
type Step = { what: 'reserve' | 'settle'; at: number; ms: number; error?: unknown }

let calls = 0
/** One call after the other, until it is time to stop. Whatever was held is settled, however often it takes. */
async function work(store: HoldQueue, organizationId: string, until: number): Promise<Step[]> {
  const steps: Step[] = []
  const attempt = async (what: Step['what'], run: () => Promise<unknown>) => {
    const at = performance.now()
    const error = await run().then(
      () => undefined,
      (thrown: unknown) => thrown ?? 'failed',
    )
    steps.push({ what, at, ms: performance.now() - at, ...(error !== undefined && { error }) })
    return error === undefined
  }
  while (performance.now() < until) {
    const call = { organizationId, id: `req_${calls++}`, amount: 7n }
    if (!(await attempt('reserve', () => store.reserve(holdOf(call))))) continue
    const settlement = settlementOf(call)
    while (!(await attempt('settle', () => store.settle(settlement))));
    await sleep(5)
  }
  return steps
}

const lockAccounts = (organizationIds: readonly string[], ms: number) =>
  transact(db, async (tx) => {
    await sql`
      select from credit_account where organization_id = any(${organizationIds}::text[])
      for update`.execute(tx)
    await sleep(ms)
  })

function describe(steps: readonly Step[]) {
  const times = steps.map(({ ms }) => Math.round(ms)).toSorted((one, two) => one - two)
  const failed = steps.filter(({ error }) => error !== undefined).length
  const at = (share: number) => times[Math.floor(times.length * share)] ?? 0
  return { steps: steps.length, failed, p50: at(0.5), p99: at(0.99), max: times.at(-1) ?? 0 }
}

test.each([1, 6])(
  '%i locked accounts: no other organization fails or waits, and theirs work again at once',
  async (count) => {
    const locked = Array.from({ length: count }, (_, index) => `org_locked_${count}_${index}`)
    for (const id of locked) await openOrganization(db, id, 1_000_000n)
    const stores = pools.map((pool) => createHoldQueue({ db: pool }))
    const busy = (organizationIds: readonly string[], until: number) =>
      Promise.all(
        organizationIds.flatMap((id) =>
          Array.from({ length: workersEach }, (_, worker) => work(stores[worker % 2]!, id, until)),
        ),
      ).then((steps) => steps.flat())
    const early = locked.map((organizationId) => ({ organizationId, id: 'early', amount: 7n }))
    await Promise.all(early.map((call) => stores[0]!.reserve(holdOf(call))))
    const settleEarly = () =>
      Promise.allSettled(early.map((call) => stores[0]!.settle(settlementOf(call))))
    const until = performance.now() + 300 + lockedMs + 500
    const working = [busy(locked, until), busy(healthy, until)] as const
    await sleep(300)
    const lockedAt = performance.now()
    const locking = lockAccounts(locked, lockedMs)
    await sleep(50)
    const late = early.map((call) => holdOf({ ...call, id: 'late' }))
    const held = Promise.allSettled(late.map((hold) => stores[1]!.reserve(hold)))
    const settledEarly = await settleEarly()
    expect(await held).toMatchObject(early.map(() => ({ reason: { status: 503 } })))
    await locking
    const unlockedAt = performance.now()
    const [theirs, others] = await Promise.all(working)

    const isDuring = ({ at }: Step) => at > lockedAt && at < unlockedAt
    const hasSettled = ({ at }: Step) => at > lockedAt + 300
    const during = others.filter(isDuring)
    const isFree = ({ at }: Step) => at > unlockedAt + 20
    console.log('others, in all', describe(during))
    console.log('others, after 300 ms', describe(during.filter(hasSettled)))
    console.log('locked', describe(theirs.filter(isDuring)))
    console.log('afterwards', describe(theirs.filter(isFree)))
    console.log('settling early', settledEarly.map(({ status }) => status).join(' '))
    expect(await settleEarly()).toMatchObject(early.map(() => ({ value: { charged: 7n } })))
    expect(others.filter(({ error }) => error !== undefined)).toEqual([])
    // A call that meets a locked account waits for it. No other call may wait for a third of that.
    const waitMs = describe(theirs.filter(isDuring)).p50 / 3
    expect(describe(during.filter(hasSettled)).steps).toBeGreaterThan(100)
    expect(describe(during.filter(hasSettled)).p99).toBeLessThan(waitMs)
    expect(describe(theirs.filter(isFree)).steps).toBeGreaterThan(4)
    expect(describe(theirs.filter(isFree)).p99).toBeLessThan(waitMs)
    expect(theirs.filter(isFree).filter(({ error }) => error !== undefined)).toEqual([])
    expect(await findImbalances(db)).toEqual([])
    const { rows } = await sql`select from credit_hold`.execute(db)
    expect(rows).toEqual([])
  },
  30_000,
)
