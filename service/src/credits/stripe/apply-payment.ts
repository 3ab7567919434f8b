import { lockOrganization } from '#access/organizations/organization-store.ts'
import { PostingRefused, postPayment, postRefund } from '#credits/payments.ts'
import { findPayment } from '#credits/post-store.ts'
import type { Tx } from '#platform/database.ts'

import { type Applied, type ApplyTools, done } from './applied.ts'
import { setRefundEventsApplied } from './event-store.ts'
import type { Effect } from './read-event.ts'
import {
  findAliases,
  findPendingRefunds,
  findRecorded,
  findReference,
  insertLink,
  insertReference,
  raiseRefund,
  setRefundPosted,
} from './report-store.ts'

// Payments and their refunds, by whatever names the provider has for them, in whatever order they are told.

export async function applyPayment(
  tx: Tx,
  { reference, microUsd }: Extract<Effect, { kind: 'payment' }>,
  organizationId: string,
  tools: ApplyTools,
): Promise<Applied> {
  const names = [reference, ...(await findAliases(tx, reference))]
  const known = await findPaymentOf(tx, names)
  if (known) await postPendingRefunds(tx, names, tools)
  if (known && known.organizationId !== organizationId) {
    const problem = `it was counted for the organization '${known.organizationId}' before`
    return { outcome: 'ignored', problem }
  }
  if (known && known.reference !== reference) return done // it counts by its other name
  try {
    await postPayment(tx, organizationId, { id: reference, amount: BigInt(microUsd) }, tools)
  } catch (error) {
    // Recorded by hand with another amount; nothing was written, so the transaction goes on.
    if (error instanceof PostingRefused) return { outcome: 'ignored', problem: error.message }
    throw error
  }
  if (known) return done
  await insertReference(tx, reference, organizationId)
  await postPendingRefunds(tx, [reference], tools)
  return done
}

type Reference = { reference: string; organizationId: string }

/** One that was reported, else one that the operator has recorded under the same id, for one organization. */
async function findPaymentOf(
  tx: Tx,
  references: readonly (string | null)[],
): Promise<Reference | undefined> {
  const reported = await findReference(tx, references)
  if (reported) return reported
  const [recorded, ...others] = await findRecorded(tx, references)
  const isOfOne = others.every(({ organizationId }) => organizationId === recorded?.organizationId)
  if (!recorded || !isOfOne) return undefined
  await insertReference(tx, recorded.reference, recorded.organizationId)
  return recorded
}

/** Tells which payment intent and which invoice are one payment. If both were counted before, that was one too many. */
export async function addLinks(
  tx: Tx,
  links: Extract<Effect, { kind: 'link' }>['links'],
  tools: ApplyTools,
): Promise<Applied> {
  let problem: string | undefined
  for (const link of links) {
    await insertLink(tx, link)
    const { paymentIntent, invoice } = link
    const counted = await findRecorded(tx, [paymentIntent, invoice])
    const areTwo = new Set(counted.map(({ reference }) => reference)).size > 1
    if (areTwo) problem = `${paymentIntent} and ${invoice} are one payment, and were counted as two`
    await postPendingRefunds(tx, [invoice], tools)
  }
  return { ...done, ...(problem && { problem }) }
}

export async function applyRefund(
  tx: Tx,
  effect: Extract<Effect, { kind: 'refund' }>,
  tools: ApplyTools,
): Promise<Applied> {
  const { charge } = effect
  const { paymentIntent, invoice } = await raiseRefund(tx, effect, tools.now())
  const payment = await findPaymentOf(tx, [paymentIntent, invoice])
  if (!payment) return { outcome: 'waiting' }
  await postPendingRefunds(tx, [charge], tools)
  await setRefundEventsApplied(tx, charge, payment.organizationId)
  return done
}

/** Posts what was reported of these and not posted yet, as far as the payment is known. */
async function postPendingRefunds(tx: Tx, references: readonly string[], tools: ApplyTools) {
  for (const pending of await findPendingRefunds(tx, references)) {
    const { charge, paymentIntent, invoice, amount, posted } = pending
    const payment = await findPaymentOf(tx, [paymentIntent, invoice])
    if (!payment) continue
    const { organizationId, reference: paymentId } = payment
    // Before its sums are read: an operator may be refunding the same payment by hand.
    await lockOrganization(tx, organizationId)
    const recorded = await findPayment(tx, organizationId, paymentId)
    const left = recorded ? recorded.amount - recorded.refunded : 0n
    const wanted = amount - posted
    const back = { id: `${charge}:${amount}`, paymentId, amount: wanted < left ? wanted : left }
    if (back.amount > 0n) await postRefund(tx, organizationId, back, tools)
    await setRefundPosted(tx, charge, amount)
    await setRefundEventsApplied(tx, charge, organizationId)
  }
}
