import { lockOrganization } from '#access/organizations/organization-store.ts'
import { findAliases, insertLink } from '#credits/payments/payment-link-store.ts'
import { findPayment } from '#credits/payments/payment-store.ts'
import { PaymentRejected, recordPaymentIn, refundPaymentIn } from '#credits/payments/payments.ts'
import type { Tx } from '#platform/database.ts'

import { applied, type ApplyDeps, type ApplyResult } from './event-outcome.ts'
import { setRefundEventsApplied } from './event-store.ts'
import type { Effect } from './read-event.ts'
import {
  findPendingRefunds,
  findRecordedPayments,
  findReference,
  insertReference,
  raiseRefund,
  setRefundInvoice,
  setRefundPosted,
} from './report-store.ts'

// Payments and their refunds, under any of the ids that Stripe has for them, reported in any order.

export async function applyPayment(
  tx: Tx,
  { reference, microUsd }: Extract<Effect, { kind: 'payment' }>,
  organizationId: string,
  deps: ApplyDeps,
): Promise<ApplyResult> {
  const ids = [reference, ...(await findAliases(tx, reference))]
  const known = await findKnownPayment(tx, ids)
  if (known) await postPendingRefunds(tx, ids, deps)
  if (known && known.organizationId !== organizationId) {
    const problem = `it is already counted for the organization '${known.organizationId}'`
    return { outcome: 'ignored', problem }
  }
  if (known && known.reference !== reference) return applied // it is counted under its other id
  try {
    await recordPaymentIn(tx, organizationId, { id: reference, amount: BigInt(microUsd) }, deps)
  } catch (error) {
    // Recorded by the operator with another amount. Nothing was written, so the transaction can go on.
    if (error instanceof PaymentRejected) return { outcome: 'ignored', problem: error.message }
    throw error
  }
  if (known) return applied
  await insertReference(tx, reference, organizationId)
  await postPendingRefunds(tx, [reference], deps)
  return applied
}

type KnownPayment = { reference: string; organizationId: string }

/** A payment that Stripe has reported, or one that the operator has recorded under the same id for one organization. */
async function findKnownPayment(
  tx: Tx,
  references: readonly (string | null)[],
): Promise<KnownPayment | undefined> {
  const reported = await findReference(tx, references)
  if (reported) return reported
  const [recorded, ...others] = await findRecordedPayments(tx, references)
  const isUnambiguous = others.every(
    ({ organizationId }) => organizationId === recorded?.organizationId,
  )
  if (!recorded || !isUnambiguous) return undefined
  await insertReference(tx, recorded.reference, recorded.organizationId)
  return recorded
}

/** Stores which payment intent and which invoice are the same payment. If both are counted, that is one too many. */
export async function addLinks(
  tx: Tx,
  links: Extract<Effect, { kind: 'link' }>['links'],
  deps: ApplyDeps,
): Promise<ApplyResult> {
  let problem: string | undefined
  for (const link of links) {
    await insertLink(tx, link)
    await setRefundInvoice(tx, link)
    const { paymentIntent, invoice } = link
    const recorded = await findRecordedPayments(tx, [paymentIntent, invoice])
    const areCountedTwice = new Set(recorded.map(({ reference }) => reference)).size > 1
    if (areCountedTwice)
      problem = `${paymentIntent} and ${invoice} are the same payment, but are counted as two`
    await postPendingRefunds(tx, [invoice], deps)
  }
  return { ...applied, ...(problem && { problem }) }
}

export async function applyRefund(
  tx: Tx,
  effect: Extract<Effect, { kind: 'refund' }>,
  deps: ApplyDeps,
): Promise<ApplyResult> {
  const { charge } = effect
  const { paymentIntent, invoice } = await raiseRefund(tx, effect, deps.now())
  const payment = await findKnownPayment(tx, [paymentIntent, invoice])
  if (!payment) return { outcome: 'waiting' }
  await postPendingRefunds(tx, [charge], deps)
  await setRefundEventsApplied(tx, charge, payment.organizationId)
  return applied
}

/** Posts reported refunds whose payment is known by now. */
async function postPendingRefunds(tx: Tx, references: readonly string[], deps: ApplyDeps) {
  for (const pending of await findPendingRefunds(tx, references)) {
    const { charge, paymentIntent, invoice, amount, posted } = pending
    const payment = await findKnownPayment(tx, [paymentIntent, invoice])
    if (!payment) continue
    const { organizationId, reference: paymentId } = payment
    // Locked before the sums are read: the operator may be refunding the same payment.
    await lockOrganization(tx, organizationId)
    const recorded = await findPayment(tx, organizationId, paymentId)
    const left = recorded ? recorded.amount - recorded.refunded : 0n
    const wanted = amount - posted
    const refund = { id: `${charge}:${amount}`, paymentId, amount: wanted < left ? wanted : left }
    if (refund.amount > 0n) await refundPaymentIn(tx, organizationId, refund, deps)
    await setRefundPosted(tx, charge, amount)
    await setRefundEventsApplied(tx, charge, organizationId)
  }
}
