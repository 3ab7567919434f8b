import {
  lockOrganization,
  type OrganizationRow,
  setOrganizationPaid,
} from '#access/organizations/organization-store.ts'
import { tierChange } from '#access/organizations/tier.ts'
import type { Actor } from '#audit/actor.ts'
import type { Announce } from '#audit/announce.ts'
import { type Account, lockAccount, setPosted } from '#credits/holds/account-store.ts'
import { findEntry, insertEntry } from '#credits/ledger-store.ts'
import { formatUsd } from '#credits/money.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db, Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import { findAliases } from './payment-link-store.ts'
import { findPayment, insertPayment } from './payment-store.ts'

// Payments and grants; refunds are in refunds.ts. `id` is chosen by the caller and unique within the organization: recording
// the same id again changes nothing. Amounts are in credits.

export type Payment = { id: string; amount: bigint }
export type Grant = { id: string; amount: bigint }
export type Refund = { id: string; amount: bigint; paymentId: string }

/** The organization after the change. A repetition has changed nothing. */
export type BalanceChange = {
  organization: OrganizationRow
  account: Account
  isRepetition: boolean
}

export type PaymentDeps = { now: Clock; announce: Announce; by: Actor }

/** The request contradicts what was recorded before. Nothing was changed; the message says what to do. */
export class PaymentRejected extends Error {}

// Each of the following returns undefined if there is no such organization.

export const recordPayment = (
  organizationId: string,
  payment: Payment,
  deps: PaymentDeps & { db: Db },
) =>
  transact(deps.db, async (tx) => {
    await rejectAlias(tx, organizationId, payment.id)
    return recordPaymentIn(tx, organizationId, payment, deps)
  })

/** Adds credits without a payment: they do not count towards the tier. */
export const grantCredits = (
  organizationId: string,
  grant: Grant,
  deps: PaymentDeps & { db: Db },
): Promise<BalanceChange | undefined> =>
  transact(deps.db, async (tx) => {
    const { announce, by } = deps
    const found = await lockBalance(tx, organizationId)
    if (!found || (await isRecorded(tx, organizationId, 'grant', grant))) return repeated(found)
    const account = await addCredits(tx, found, { ...grant, kind: 'grant', from: 'promo', by })
    const after = { id: grant.id, object: 'credit_grant', credits: Number(grant.amount) }
    await announce(tx, { organizationId, by, action: 'created', before: null, after })
    return { ...found, account, isRepetition: false }
  })

/** Adds credits, and counts towards the tier. */
export async function recordPaymentIn(
  tx: Tx,
  organizationId: string,
  payment: Payment,
  { now, announce, by }: PaymentDeps,
): Promise<BalanceChange | undefined> {
  const found = await lockBalance(tx, organizationId)
  if (!found || (await isRecorded(tx, organizationId, 'payment', payment))) return repeated(found)
  const { id, amount } = payment
  const account = await addCredits(tx, found, { ...payment, kind: 'payment', from: 'topup', by })
  await insertPayment(tx, organizationId, { id, amount, recordedAt: now() })
  const paid = BigInt(found.organization.paid_micro_usd) + amount
  const organization = await setOrganizationPaid(tx, organizationId, paid)
  const facts = { payment_id: id, credits: Number(amount) }
  await announce(tx, { ...tierChange(found.organization, organization, by), facts })
  return { organization, account, isRepetition: false }
}

export type Locked = { organization: OrganizationRow; account: Account }

/** Always in this order, so that two transactions never wait for each other. */
export async function lockBalance(tx: Tx, organizationId: string): Promise<Locked | undefined> {
  const organization = await lockOrganization(tx, organizationId)
  return organization && { organization, account: await lockAccount(tx, organizationId) }
}

export const repeated = (found: Locked | undefined): BalanceChange | undefined =>
  found && { ...found, isRepetition: true }

/** Is exactly this in the ledger already? */
export async function isRecorded(
  tx: Tx,
  organizationId: string,
  kind: 'payment' | 'grant' | 'refund',
  { id, amount }: Payment | Grant | Refund,
): Promise<boolean> {
  rejectReservedSuffix(id)
  const entry = await findEntry(tx, organizationId, id)
  if (!entry) return false
  if (entry.kind !== kind) {
    throw new PaymentRejected(
      `'${id}' is recorded already, as a ${entry.kind}. Use another id for this ${kind}.`,
    )
  }
  if (kind !== 'refund' && entry.amount !== amount) throw anotherAmount(kind, id, entry.amount)
  return true
}

export const anotherAmount = (kind: string, id: string, amount: bigint) =>
  new PaymentRejected(
    `The ${kind} '${id}' is recorded already, with another amount: ${formatUsd(amount)} USD. Repeat it with that amount, or use another id for this ${kind}.`,
  )

/** Stripe has two ids for some payments. A payment that is recorded under one cannot be recorded under the other. */
async function rejectAlias(tx: Tx, organizationId: string, id: string) {
  for (const alias of await findAliases(tx, id)) {
    if (!(await findPayment(tx, organizationId, alias))) continue
    throw new PaymentRejected(`'${id}' is the payment '${alias}', which is recorded already.`)
  }
}

/** Ledger entries that we derive from another one end with these. */
function rejectReservedSuffix(id: string) {
  const suffix = [':writeoff', ':late'].find((each) => id.endsWith(each))
  if (suffix) throw new PaymentRejected(`An id cannot end with '${suffix}'. Choose another one.`)
}

type Addition = (Payment | Grant) & {
  kind: 'payment' | 'grant'
  from: 'topup' | 'promo'
  by: Actor
}

/** Numbers in JSON are exact up to here: nine billion USD. */
const creditsMax = BigInt(Number.MAX_SAFE_INTEGER)

async function addCredits(tx: Tx, { organization, account }: Locked, addition: Addition) {
  const { id, amount, kind, from, by } = addition
  const posted = account.posted + amount
  if (posted + account.used > creditsMax) {
    throw new PaymentRejected(`With this ${kind} the balance would exceed ${creditsMax} credits.`)
  }
  const entry = { id, debit: from, credit: 'wallet', amount, kind, meta: { by: by.id } } as const
  await insertEntry(tx, organization.id, entry)
  await setPosted(tx, organization.id, posted)
  return { ...account, posted }
}
