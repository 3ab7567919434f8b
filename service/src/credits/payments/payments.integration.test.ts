import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { operator } from '#audit/event.ts'
import { findAccount } from '#credits/holds/account-store.ts'
import { createTestApi } from '#testing/test-api.ts'

import { grantCredits, recordPayment } from './payments.ts'
import { refundPayment } from './refunds.ts'

// Payments, grants and refunds on a real database.

async function createWallet() {
  const { house, organization, db } = await createTestApi()
  const { organizationId: id } = organization
  const deps = { ...house, db, by: operator } // its own pool would give up on a slow machine
  const entries = () =>
    db
      .selectFrom('ledger_entry')
      .select(['id', 'debit', 'credit', 'amount', 'kind'])
      .where('organization_id', '=', id)
      .orderBy('seq')
      .execute()
  return {
    id,
    db,
    house,
    entries,
    pay: (payment: string, amount: bigint) => recordPayment(id, { id: payment, amount }, deps),
    grant: (gift: string, amount: bigint) => grantCredits(id, { id: gift, amount }, deps),
    refund: (back: string, paymentId: string, amount: bigint) =>
      refundPayment(id, { id: back, paymentId, amount }, deps),
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
      const changes = await db.selectFrom('config_change').select('kind').orderBy('seq').execute()
      return {
        events: events.map(({ header }) => header),
        changes: changes.map(({ kind }) => kind),
      }
    },
  }
}

test('a payment adds credits and is counted, a grant only adds credits; both have events', async () => {
  const wallet = await createWallet()
  const before = (await wallet.changes()).changes.length
  expect(await wallet.pay('pay_1', 20_000_000n)).toMatchObject({ isRepetition: false })
  expect(await wallet.grant('gift_1', 5_000_000n)).toMatchObject({ isRepetition: false })
  expect(await wallet.account()).toMatchObject({ posted: 25_000_000n, used: 0n, held: 0n })
  expect(await wallet.paid()).toBe(20_000_000n)
  expect(await wallet.entries()).toEqual([
    { id: 'pay_1', debit: 'topup', credit: 'wallet', amount: '20000000', kind: 'payment' },
    { id: 'gift_1', debit: 'promo', credit: 'wallet', amount: '5000000', kind: 'grant' },
  ])
  const { events, changes } = await wallet.changes()
  expect(events.slice(-2)).toMatchObject([
    { actor: 'operator', object: 'organization', payment_id: 'pay_1', credits: 20_000_000 },
    { actor: 'operator', object: 'credit_grant', object_id: 'gift_1' },
  ])
  expect(changes.slice(before)).toEqual(['organization'])
})

test('a refund takes back credits and what was counted, in parts up to the payment', async () => {
  const wallet = await createWallet()
  await wallet.pay('pay_1', 20_000_000n)
  await wallet.refund('back_1', 'pay_1', 5_000_000n)
  await wallet.refund('back_2', 'pay_1', 15_000_000n)
  expect(await wallet.account()).toMatchObject({ posted: 0n, used: 0n, held: 0n })
  expect(await wallet.paid()).toBe(0n)
  await expect(wallet.refund('back_3', 'pay_1', 1n)).rejects.toThrow(
    "Only 0.00 USD of the payment 'pay_1' can be refunded: 20.00 USD were paid",
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
  await wallet.refund('back_1', 'pay_1', 15_000_000n)
  expect(await wallet.account()).toMatchObject({
    posted: 4_000_000n,
    used: 8_000_000n,
    held: 4_000_000n,
  })
  expect(await wallet.paid()).toBe(5_000_000n)
  await wallet.refund('back_2', 'pay_1', 5_000_000n)
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
  expect(await wallet.refund('back_1', 'pay_1', 15_000_000n)).toMatchObject({
    isRepetition: true,
  })
})

test('the same id again changes nothing; with other content it is refused', async () => {
  const wallet = await createWallet()
  await wallet.pay('a', 10n)
  await wallet.pay('b', 10n)
  await wallet.grant('c', 5n)
  await wallet.refund('d', 'a', 4n)
  const before = [await wallet.account(), await wallet.entries(), await wallet.changes()]
  for (const repeat of [
    () => wallet.pay('a', 10n),
    () => wallet.grant('c', 5n),
    () => wallet.refund('d', 'a', 4n),
  ]) {
    expect(await repeat()).toMatchObject({ isRepetition: true })
  }
  for (const [other, message] of [
    [() => wallet.pay('a', 11n), "The payment 'a' is recorded already, with another amount"],
    [() => wallet.grant('c', 6n), "The grant 'c' is recorded already, with another amount"],
    [() => wallet.refund('d', 'a', 5n), "The refund 'd' is recorded already, with another"],
    [() => wallet.refund('d', 'b', 4n), "for the payment 'a'"],
    [() => wallet.grant('a', 10n), "'a' is recorded already, as a payment"],
    [() => wallet.pay('d', 4n), "'d' is recorded already, as a refund"],
    [() => wallet.refund('e', 'none', 1n), "has no payment 'none'"],
    [() => wallet.refund('e', 'c', 1n), "has no payment 'c'"],
    [() => wallet.pay('x:writeoff', 1n), "An id cannot end with ':writeoff'"],
    [() => wallet.grant('huge', 2n ** 53n), 'would exceed 9007199254740991 credits'],
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
  const backs = Array.from({ length: 10 }, (_, index) => wallet.refund(`b${index}`, 'pay_0', 3n))
  expect(await settle(backs)).toBe(3)
  expect([await wallet.account(), await wallet.paid()]).toMatchObject([{ posted: 31n }, 31n])
})

test('calls that are charged at the same time are not forgotten', async () => {
  const wallet = await createWallet()
  await wallet.pay('first', 1000n)
  const posts = Array.from({ length: 30 }, (_, index) => wallet.pay(`pay_${index}`, 100n))
  const calls = Array.from({ length: 60 }, () => wallet.use({ used: 1n }))
  await Promise.all([...posts, ...calls])
  expect(await wallet.account()).toMatchObject({ posted: 3940n, used: 60n, held: 0n })
})

test('one organization cannot refund the payment of another, and one that is not there gets nothing', async () => {
  const wallet = await createWallet()
  await wallet.pay('pay_1', 10n)
  const deps = { ...wallet.house, by: operator }
  expect(await recordPayment('org_none', { id: 'x', amount: 1n }, deps)).toBeUndefined()
  const back = { id: 'x', paymentId: 'pay_1', amount: 1n }
  const { organizationId: another } = await createOrganization('Another', wallet.house)
  await expect(refundPayment(another, back, deps)).rejects.toThrow("has no payment 'pay_1'")
  expect(await refundPayment('org_none', back, deps)).toBeUndefined()
})
