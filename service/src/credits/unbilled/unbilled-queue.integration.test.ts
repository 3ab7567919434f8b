import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { createHoldQueue } from '#credits/holds/hold-queue.ts'
import { reconcile } from '#credits/reconcile/reconcile.ts'
import type { CallQueue } from '#credits/settlement.ts'
import type { Db } from '#platform/database.ts'
import {
  findImbalances,
  holdOf,
  openOrganization,
  readCredits,
  settlementOf,
} from '#testing/credit-calls.ts'
import { connectPatiently, createTestDatabase } from '#testing/test-database.ts'

import { createUnbilledQueue } from './unbilled-queue.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db
let queue: CallQueue
beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  queue = createUnbilledQueue({ db })
})
afterAll(() => database[Symbol.asyncDispose]())

let organizations = 0
let organizationId: string
beforeEach(async () => {
  organizationId = `org_${organizations++}`
  await openOrganization(db, organizationId, 100n)
})

const subjectOf = (index: number) => ({
  projectId: `proj_${index % 3}`,
  keyId: `key_${index % 2}`,
  model: 'model',
})
const callOf = (index: number) => ({
  organizationId,
  id: `req_${index}`,
  amount: 7n,
  subject: subjectOf(index),
})

test('a call beyond the balance is recorded: one event, the day sums, and nothing else', async () => {
  const call = { organizationId, id: 'req', amount: 5000n }
  expect(await queue.reserve(holdOf(call))).toEqual({ isHeld: true })
  expect(await queue.settle(settlementOf(call))).toEqual({ charged: 5000n, posted: null })
  const { posted, used, held, holds, entries, events, days } = await readCredits(db, organizationId)
  expect([posted, used, held, holds.size]).toEqual([100n, 0n, 0n, 0])
  expect([...entries.keys()]).toEqual(['first'])
  expect(events).toEqual(['req completed'])
  expect([...days.values()]).toEqual([
    { requests: 1, inputTokens: 10, outputTokens: 5, credits: 5000n },
  ])
})

test('a call that is recorded twice, at once or later, by any process, counts once', async () => {
  const settlement = settlementOf(callOf(0))
  await Promise.all([queue.settle(settlement), queue.settle(settlement)])
  await createUnbilledQueue({ db }).settle(settlement)
  const { events, days } = await readCredits(db, organizationId)
  expect(events).toHaveLength(1)
  expect([...days.values()]).toMatchObject([{ requests: 1, credits: 7n }])
})

test('several processes record many calls of the same days: none is lost, and no statement fails', async () => {
  const pools = Array.from({ length: 3 }, () =>
    connectPatiently({ url: database.url, poolSize: 3, lockTimeoutMs: 5000 }),
  )
  const queues = pools.map((pool) => createUnbilledQueue({ db: pool }))
  const indexes = Array.from({ length: 900 }, (_, index) => index)
  await Promise.all(
    indexes.map((index) => queues[index % 3]!.settle(settlementOf(callOf(index * 7)))),
  )
  await Promise.all(pools.map((pool) => pool.destroy()))
  const { events, days } = await readCredits(db, organizationId)
  expect(events).toHaveLength(900)
  const sums = [...days.values()]
  expect(sums).toHaveLength(6)
  expect(sums.reduce((sum, { requests }) => sum + requests, 0)).toBe(900)
  expect(sums.reduce((sum, { credits }) => sum + credits, 0n)).toBe(6300n)
})

test('reconciliation leaves out what was recorded, and still finds what differs on the same day', async () => {
  const billed = createHoldQueue({ db })
  const charged = { organizationId, id: 'charged', amount: 50n }
  await billed.reserve(holdOf(charged))
  await billed.settle(settlementOf(charged))
  await queue.settle(settlementOf({ ...charged, id: 'recorded' }))
  expect(await findImbalances(db)).toEqual([])
  const find = async () =>
    (await reconcile(db, { organizationId })).differences.filter(
      ({ what }) => what === 'usage of a day',
    )
  expect(await find()).toEqual([])
  await db
    .updateTable('usage_day')
    .set({ requests: 3 })
    .where('organization_id', '=', organizationId)
    .execute()
  expect(await find()).toMatchObject([
    {
      expected: '1 requests, 10 + 5 tokens, 50 credits',
      found: '2 requests, 10 + 5 tokens, 50 credits',
    },
  ])
})
