import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createOrganization } from '#access/organizations/organizations.ts'
import { operator } from '#audit/event.ts'
import { createTestApi } from '#testing/test-api.ts'

import { grant, payIn, refund } from './payments.ts'
import { findAccount } from './post-store.ts'

// Money that comes in and goes out, on a real database.

async function createWallet() {
  const { house, organization, db } = await createTestApi()
  const { organizationId: id } = organization
  const tools = { ...house, by: operator }
  const entries = () =>
    db
      .selectFrom('ledger_entry')
      .select(['id', 'debit', 'credit', 'amount', 'kind'])
      .where('organization_id', '=', id)
      .orderBy('seq')
      .execute()
  return {
    ...{ id, db, house, entries },
    pay: (payment: string, amount: bigint) => payIn(id, { id: payment, amount }, tools),
    give: (gift: string, amount: bigint) => grant(id, { id: gift, amount }, tools),
    takeBack: (back: string, paymentId: string, amount: bigint) =>
      refund(id, { id: back, paymentId, amount }, tools),
    account: () => findAccount(db, id),
    async paid() {
      const row = await db
        .selectFrom('organization')
        .select('paid_micro_usd')
        .where('id', '=', id)
        .executeTakeFirstOrThrow()
      return BigInt(row.paid_micro_usd)
    },
    /** As calls do. */
    async use({ used = 0n, held = 0n }) {
      await sql`update credit_account set posted = posted - ${used}, used = used + ${used},
        held = held + ${held} where organization_id = ${id}`.execute(db)
    },
    async changes() {
      const events = await db
        .selectFrom('event')
        .select('header')
        .where('organization_id', '=', id)
        .orderBy('seq')
        .execute()
      const told = await db.selectFrom('config_change').select('kind').orderBy('seq').execute()
      return { events: events.map(({ header }) => header), told: told.map(({ kind }) => kind) }
    },
  }
}

test('a payment adds credits and is counted, a grant only adds credits; both are told', async () => {
  const wallet = await createWallet()
  const before = (await wallet.changes()).told.length
  expect(await wallet.pay('pay_1', 20_000_000n)).toMatchObject({ isRepetition: false })
  expect(await wallet.give('gift_1', 5_000_000n)).toMatchObject({ isRepetition: false })
  expect(await wallet.account()).toEqual({ posted: 25_000_000n, used: 0n, held: 0n })
  expect(await wallet.paid()).toBe(20_000_000n)
  expect(await wallet.entries()).toEqual([
    { id: 'pay_1', debit: 'topup', credit: 'wallet', amount: '20000000', kind: 'payment' },
    { id: 'gift_1', debit: 'promo', credit: 'wallet', amount: '5000000', kind: 'grant' },
  ])
  const { events, told } = await wallet.changes()
  expect(events.slice(-2)).toMatchObject([
    { actor: 'operator', object: 'organization', payment_id: 'pay_1', credits: 20_000_000 },
    { actor: 'operator', object: 'credit_grant', object_id: 'gift_1' },
  ])
  expect(told.slice(before)).toEqual(['organization'])
})

test('a refund takes back credits and what was counted, in parts up to the payment', async () => {
  const wallet = await createWallet()
  await wallet.pay('pay_1', 20_000_000n)
  await wallet.takeBack('back_1', 'pay_1', 5_000_000n)
  await wallet.takeBack('back_2', 'pay_1', 15_000_000n)
  expect(await wallet.account()).toEqual({ posted: 0n, used: 0n, held: 0n })
  expect(await wallet.paid()).toBe(0n)
  await expect(wallet.takeBack('back_3', 'pay_1', 1n)).rejects.toThrow(
    "Of the payment 'pay_1' only 0.00 USD can be refunded: 20.00 USD were paid",
  )
  expect((await wallet.entries()).slice(1)).toEqual([
    { id: 'back_1', debit: 'wallet', credit: 'refund', amount: '5000000', kind: 'refund' },
    { id: 'back_2', debit: 'wallet', credit: 'refund', amount: '15000000', kind: 'refund' },
  ])
})

test('what was spent or is held for calls cannot be taken back: it is written off', async () => {
  const wallet = await createWallet()
  await wallet.pay('pay_1', 20_000_000n)
  await wallet.use({ used: 8_000_000n, held: 4_000_000n })
  await wallet.takeBack('back_1', 'pay_1', 15_000_000n)
  expect(await wallet.account()).toEqual({ posted: 4_000_000n, used: 8_000_000n, held: 4_000_000n })
  expect(await wallet.paid()).toBe(5_000_000n)
  await wallet.takeBack('back_2', 'pay_1', 5_000_000n)
  expect((await wallet.entries()).slice(1)).toEqual([
    { id: 'back_1', debit: 'wallet', credit: 'refund', amount: '8000000', kind: 'refund' },
    ...[{ id: 'back_1:writeoff', debit: 'writeoff', credit: 'refund', amount: '7000000' }].map(
      (entry) => ({ ...entry, kind: 'writeoff' }),
    ),
    { id: 'back_2', debit: 'wallet', credit: 'refund', amount: '0', kind: 'refund' },
    ...[{ id: 'back_2:writeoff', debit: 'writeoff', credit: 'refund', amount: '5000000' }].map(
      (entry) => ({ ...entry, kind: 'writeoff' }),
    ),
  ])
  expect(await wallet.takeBack('back_1', 'pay_1', 15_000_000n)).toMatchObject({
    isRepetition: true,
  })
})

test('the same id again changes nothing; with other content it is refused', async () => {
  const wallet = await createWallet()
  await wallet.pay('a', 10n)
  await wallet.pay('b', 10n)
  await wallet.give('c', 5n)
  await wallet.takeBack('d', 'a', 4n)
  const before = [await wallet.account(), await wallet.entries(), await wallet.changes()]
  for (const repeat of [
    () => wallet.pay('a', 10n),
    () => wallet.give('c', 5n),
    () => wallet.takeBack('d', 'a', 4n),
  ]) {
    expect(await repeat()).toMatchObject({ isRepetition: true })
  }
  for (const [other, message] of [
    [() => wallet.pay('a', 11n), "The payment 'a' was recorded before, with another amount"],
    [() => wallet.give('c', 6n), "The grant 'c' was recorded before, with another amount"],
    [() => wallet.takeBack('d', 'a', 5n), "The refund 'd' was recorded before, with another"],
    [() => wallet.takeBack('d', 'b', 4n), "of the payment 'a'"],
    [() => wallet.give('a', 10n), "'a' was recorded before, as a payment"],
    [() => wallet.pay('d', 4n), "'d' was recorded before, as a refund"],
    [() => wallet.takeBack('e', 'none', 1n), "has no payment 'none'"],
    [() => wallet.takeBack('e', 'c', 1n), "has no payment 'c'"],
    [() => wallet.pay('x:writeoff', 1n), "An id cannot end with ':writeoff'"],
    [() => wallet.give('huge', 2n ** 53n), 'more than can be counted'],
  ] as const) {
    await expect(other()).rejects.toThrow(message)
  }
  expect([await wallet.account(), await wallet.entries(), await wallet.changes()]).toEqual(before)
})

test('many at once: each counts once, and no more is refunded than was paid', async () => {
  const wallet = await createWallet()
  const settle = async (work: Promise<unknown>[]) =>
    (await Promise.allSettled(work)).filter(({ status }) => status === 'fulfilled').length
  const pays = Array.from({ length: 20 }, (_, index) => wallet.pay(`pay_${index % 4}`, 10n))
  expect(await settle(pays)).toBe(20)
  expect(await wallet.account()).toMatchObject({ posted: 40n })
  const backs = Array.from({ length: 10 }, (_, index) => wallet.takeBack(`b${index}`, 'pay_0', 3n))
  expect(await settle(backs)).toBe(3)
  expect([await wallet.account(), await wallet.paid()]).toMatchObject([{ posted: 31n }, 31n])
})

test('calls that are charged at the same time are not forgotten', async () => {
  const wallet = await createWallet()
  await wallet.pay('first', 1000n)
  const posts = Array.from({ length: 30 }, (_, index) => wallet.pay(`pay_${index}`, 100n))
  const calls = Array.from({ length: 60 }, () => wallet.use({ used: 1n }))
  await Promise.all([...posts, ...calls])
  expect(await wallet.account()).toEqual({ posted: 3940n, used: 60n, held: 0n })
})

test('one organization cannot refund the payment of another, and one that is not there gets nothing', async () => {
  const wallet = await createWallet()
  await wallet.pay('pay_1', 10n)
  const tools = { ...wallet.house, by: operator }
  expect(await payIn('org_none', { id: 'x', amount: 1n }, tools)).toBeUndefined()
  const back = { id: 'x', paymentId: 'pay_1', amount: 1n }
  const { organizationId: another } = await createOrganization('Another', wallet.house)
  await expect(refund(another, back, tools)).rejects.toThrow("has no payment 'pay_1'")
  expect(await refund('org_none', back, tools)).toBeUndefined()
})
