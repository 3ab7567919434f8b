import { setOrganizationPaid } from '#access/organizations/organization-store.ts'
import { tierChange } from '#access/organizations/tier.ts'
import { setPosted } from '#credits/holds/account-store.ts'
import { insertEntry, type NewEntry } from '#credits/ledger-store.ts'
import { formatUsd } from '#credits/money.ts'
import type { LedgerAccount } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import { findPayment, findRefund, insertRefund, sumWrittenOff } from './payment-store.ts'
import {
  anotherAmount,
  type BalanceChange,
  isRecorded,
  lockBalance,
  type Locked,
  type PaymentDeps,
  PaymentRejected,
  type Refund,
  repeated,
} from './payments.ts'

// Each of the following returns undefined if there is no such organization.

export const refundPayment = (
  organizationId: string,
  refund: Refund,
  deps: PaymentDeps & { db: Db },
) => transact(deps.db, (tx) => refundPaymentIn(tx, organizationId, refund, deps))

/**
 * Takes back a payment or part of one. All of it stops counting towards the tier. Credits are taken back as
 * far as the balance goes, without those held for open calls; the rest has been spent and is written off. The balance of a
 * metered account may fall below zero instead.
 */
export async function refundPaymentIn(
  tx: Tx,
  organizationId: string,
  refund: Refund,
  deps: PaymentDeps,
): Promise<BalanceChange | undefined> {
  const found = await lockBalance(tx, organizationId)
  if (!found) return undefined
  if (await isRefunded(tx, organizationId, refund)) return repeated(found)
  await rejectMoreThanPaid(tx, organizationId, refund)
  const { posted, held, isMetered } = found.account
  const available = posted > held ? posted - held : 0n
  const taken = isMetered ? refund.amount : smaller(refund.amount, available)
  return postRefund(tx, found, { ...refund, taken, writtenOff: refund.amount - taken }, deps)
}

/**
 * Undoes refunds of a payment, or part of them: they failed, or the payer's bank decided for us. What was
 * written off is undone first, because it was spent; then the balance is what it would be without them.
 */
export async function undoRefundsIn(
  tx: Tx,
  organizationId: string,
  { id, amount, paymentId }: Refund,
  deps: PaymentDeps,
): Promise<BalanceChange | undefined> {
  const found = await lockBalance(tx, organizationId)
  if (!found) return undefined
  const writtenOff = smaller(amount, await sumWrittenOff(tx, organizationId, paymentId))
  const taken = amount - writtenOff
  const undone = { id, paymentId, amount: -amount, taken: -taken, writtenOff: -writtenOff }
  return postRefund(tx, found, undone, deps)
}

/** All amounts are negative if refunds are undone. */
type PostedRefund = Refund & { taken: bigint; writtenOff: bigint }

async function postRefund(
  tx: Tx,
  found: Locked,
  { id, paymentId, amount, taken, writtenOff }: PostedRefund,
  { now, announce, by }: PaymentDeps,
): Promise<BalanceChange> {
  const { id: organizationId } = found.organization
  const meta = { by: by.id, payment_id: paymentId }
  const isUndone = amount < 0n
  const entry = { id, kind: 'refund', meta } as const
  await insertEntry(tx, organizationId, { ...entry, ...move('wallet', taken, isUndone) })
  if (writtenOff !== 0n) {
    const writeoff = { id: `${id}:writeoff`, kind: 'writeoff', meta } as const
    const moved = move('writeoff', writtenOff, isUndone)
    await insertEntry(tx, organizationId, { ...writeoff, ...moved })
  }
  const posted = found.account.posted - taken
  await setPosted(tx, organizationId, posted)
  await insertRefund(tx, organizationId, { id, amount, paymentId, recordedAt: now() })
  const paid = BigInt(found.organization.paid_micro_usd) - amount
  const organization = await setOrganizationPaid(tx, organizationId, paid)
  const credits = { credits: Number(-taken), credits_written_off: Number(writtenOff) }
  const facts = { refund_id: id, payment_id: paymentId, ...credits }
  await announce(tx, { ...tierChange(found.organization, organization, by), facts })
  return { organization, account: { ...found.account, posted }, isRepetition: false }
}

/** What is undone goes the other way. */
const move = (
  from: LedgerAccount,
  amount: bigint,
  isUndone: boolean,
): Pick<NewEntry, 'debit' | 'credit' | 'amount'> =>
  isUndone
    ? { debit: 'refund', credit: from, amount: -amount }
    : { debit: from, credit: 'refund', amount }

const smaller = (one: bigint, other: bigint) => (one < other ? one : other)

async function isRefunded(tx: Tx, organizationId: string, refund: Refund): Promise<boolean> {
  if (!(await isRecorded(tx, organizationId, 'refund', refund))) return false
  const recorded = await findRefund(tx, organizationId, refund.id)
  if (recorded?.paymentId !== refund.paymentId) {
    throw new PaymentRejected(
      `The refund '${refund.id}' is recorded already, for the payment '${recorded?.paymentId}'. Use another id for this refund.`,
    )
  }
  if (recorded.amount !== refund.amount) throw anotherAmount('refund', refund.id, recorded.amount)
  return true
}

async function rejectMoreThanPaid(tx: Tx, organizationId: string, refund: Refund) {
  const { paymentId, amount } = refund
  const payment = await findPayment(tx, organizationId, paymentId)
  if (!payment) {
    throw new PaymentRejected(
      `The organization '${organizationId}' has no payment '${paymentId}'. Record the payment first, or name another one.`,
    )
  }
  const left = payment.amount - payment.refunded
  if (amount <= left) return
  throw new PaymentRejected(
    `Only ${formatUsd(left)} USD of the payment '${paymentId}' can be refunded: ${formatUsd(payment.amount)} USD were paid, ${formatUsd(payment.refunded)} USD have been refunded.`,
  )
}
