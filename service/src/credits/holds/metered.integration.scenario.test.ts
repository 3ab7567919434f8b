import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { createAnnouncer } from '#audit/announce.ts'
import { operator } from '#audit/event.ts'
import { recordPayment } from '#credits/payments/payments.ts'
import { refundPayment } from '#credits/payments/refunds.ts'
import { systemClock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import {
  findImbalances,
  holdOf,
  letExpire,
  openOrganization,
  readCredits,
  settlementOf,
} from '#testing/credit-calls.ts'
import { createTestDatabase } from '#testing/test-database.ts'

import { findAccount } from './account-store.ts'
import { createHoldQueue, type HoldQueue } from './hold-queue.ts'
import { sweepHolds } from './sweep-store.ts'

// BILLING=metered: everything is written as usual, and nothing is refused. Each test has an organization with 100 credits.

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db
let metered: HoldQueue
let prepaid: HoldQueue
beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  metered = createHoldQueue({ db, isMetered: true, reserveMaxMs: 20_000 })
  prepaid = createHoldQueue({ db, reserveMaxMs: 20_000 })
})
afterAll(() => database[Symbol.asyncDispose]())

let organizations = 0
let organizationId: string
beforeEach(async () => {
  organizationId = `org_${organizations++}`
  await openOrganization(db, organizationId, 100n)
})

const reserve = (queue: HoldQueue, id: string, amount: bigint) =>
  queue.reserve(holdOf({ organizationId, id, amount }))
const settle = (queue: HoldQueue, id: string, amount: bigint) =>
  queue.settle(settlementOf({ organizationId, id, amount }))
const read = () => readCredits(db, organizationId)
const isMetered = async () => (await findAccount(db, organizationId))?.isMetered

test('every hold is made, however many there are, and the balance falls below zero', async () => {
  const ids = Array.from({ length: 300 }, (_, index) => `req_${index}`)
  const answers = await Promise.all(ids.map((id) => reserve(metered, id, 10n)))
  expect(answers.every(({ isHeld }) => isHeld)).toBe(true)
  expect(await read()).toMatchObject({ posted: 100n, held: 3000n })
  await Promise.all(ids.map((id) => settle(metered, id, 7n)))
  expect(await read()).toMatchObject({ posted: -2000n, used: 2100n, held: 0n })
  expect(await findImbalances(db)).toEqual([])
})

test('a call is charged at most its hold', async () => {
  await reserve(metered, 'long', 500n)
  expect(await settle(metered, 'long', 600n)).toEqual({ charged: 500n, posted: -400n })
  expect((await read()).entries.get('long:writeoff')).toEqual({ kind: 'writeoff', amount: 100n })
})

test('a settlement that comes after the sweep is charged as if it had come before, by a process of any mode', async () => {
  for (const [id, queue] of [
    ['late_1', metered],
    ['late_2', prepaid],
  ] as const) {
    await reserve(metered, id, 80n)
    await letExpire(db, organizationId, id)
    expect(await sweepHolds(db)).toBe(1)
    expect((await settle(queue, id, 85n)).charged).toBe(80n)
  }
  const { entries, posted, events } = await read()
  expect(posted).toBe(-60n)
  expect([...entries.values()].filter(({ kind }) => kind === 'writeoff')).toEqual([
    { kind: 'writeoff', amount: 5n },
    { kind: 'writeoff', amount: 5n },
  ])
  expect(events).toHaveLength(4)
  expect(await findImbalances(db)).toEqual([])
})

test('back in prepaid mode: refused until the balance covers a call again, and then never below zero', async () => {
  await reserve(metered, 'before', 150n)
  await settle(metered, 'before', 150n)
  expect(await reserve(prepaid, 'after', 10n)).toEqual({ isHeld: false, available: -50n, held: 0n })
  expect(await reserve(prepaid, 'nothing', 0n)).toMatchObject({ isHeld: false })
  expect(await isMetered()).toBe(true)
  const announce = createAnnouncer(systemClock, () => undefined)
  const deps = { db, now: systemClock, announce, by: operator }
  await recordPayment(organizationId, { id: 'pay', amount: 60n }, deps)
  expect(await reserve(prepaid, 'after', 10n)).toEqual({ isHeld: true })
  expect(await isMetered()).toBe(false)
  expect((await reserve(prepaid, 'more', 1n)).isHeld).toBe(false)
  const overdrawn = db.updateTable('credit_account').set({ posted: 9n })
  await expect(overdrawn.where('organization_id', '=', organizationId).execute()).rejects.toThrow(
    'credit_account_floor',
  )
})

test('a refund takes all of the payment back, and is not written off', async () => {
  const announce = createAnnouncer(systemClock, () => undefined)
  const deps = { db, now: systemClock, announce, by: operator }
  await recordPayment(organizationId, { id: 'pay', amount: 60n }, deps)
  await reserve(metered, 'call', 150n)
  await settle(metered, 'call', 150n)
  await refundPayment(organizationId, { id: 'back', amount: 60n, paymentId: 'pay' }, deps)
  expect(await read()).toMatchObject({ posted: -50n, used: 150n })
  expect((await read()).entries.has('back:writeoff')).toBe(false)
  expect(await findImbalances(db)).toEqual([])
})

test('processes of both modes side by side, while the operator switches: no statement fails', async () => {
  const verdicts = await Promise.all(
    Array.from({ length: 400 }, async (_, index) => {
      const queue = index % 2 === 0 ? metered : prepaid
      const { isHeld } = await reserve(queue, `req_${index}`, 5n)
      if (isHeld) await settle(index % 3 === 0 ? metered : prepaid, `req_${index}`, 5n)
      return { isMetered: index % 2 === 0, isHeld }
    }),
  )
  expect(verdicts.filter((each) => each.isMetered && !each.isHeld)).toEqual([])
  const held = verdicts.filter(({ isHeld }) => isHeld).length
  expect(held).toBeLessThan(400)
  expect(await read()).toMatchObject({ posted: 100n - BigInt(held) * 5n, held: 0n })
  expect(await findImbalances(db)).toEqual([])
})
