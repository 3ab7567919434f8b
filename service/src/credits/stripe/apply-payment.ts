import { findAliases, insertLink } from '#credits/payments/payment-link-store.ts'
import { findPayment } from '#credits/payments/payment-store.ts'
import { PaymentRejected, recordPaymentIn } from '#credits/payments/payments.ts'
import type { Tx } from '#platform/database.ts'

import { adjustRefundsOf } from './apply-charge-report.ts'
import { setChargeInvoice } from './charge-store.ts'
import { applied, type ApplyDeps, type ApplyResult } from './event-outcome.ts'
import { findKnownPayment, type KnownPayment } from './known-payment.ts'
import type { Effect } from './read-event.ts'
import { findRecordedPayments, insertReference, setCharged } from './report-store.ts'

// Payments under any of the ids that Stripe has for them, reported in any order.

type ReportedPayment = Extract<Effect, { kind: 'payment' }>

export async function applyPayment(
  tx: Tx,
  payment: ReportedPayment,
  organizationId: string,
  deps: ApplyDeps,
): Promise<ApplyResult> {
  const ids = [payment.reference, ...(await findAliases(tx, payment.reference))]
  const known = await findKnownPayment(tx, ids)
  const result =
    known && known.organizationId !== organizationId
      ? countedElsewhere(known)
      : await countPayment(tx, payment, { organizationId, known }, deps)
  await adjustRefundsOf(tx, ids, deps)
  return result
}

const countedElsewhere = ({ organizationId }: KnownPayment): ApplyResult => ({
  outcome: 'ignored',
  problem: `it is already counted for the organization '${organizationId}'`,
})

async function countPayment(
  tx: Tx,
  { reference, microUsd, chargedMicroUsd = microUsd }: ReportedPayment,
  { organizationId, known }: { organizationId: string; known: KnownPayment | undefined },
  deps: ApplyDeps,
): Promise<ApplyResult> {
  const counted = known?.reference ?? reference // which may be its other id
  if (counted === reference) {
    try {
      await recordPaymentIn(tx, organizationId, { id: reference, amount: BigInt(microUsd) }, deps)
    } catch (error) {
      // Recorded by the operator with another amount. Nothing was written, so the transaction can go on.
      if (error instanceof PaymentRejected) return { outcome: 'ignored', problem: error.message }
      throw error
    }
    if (!known) await insertReference(tx, reference, organizationId)
  }
  // The operator may have credited the tax too; then refunds take back as much as they say.
  const recorded = await findPayment(tx, organizationId, counted)
  if (recorded?.amount === BigInt(microUsd)) await setCharged(tx, counted, chargedMicroUsd)
  return applied
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
    await setChargeInvoice(tx, link)
    const { paymentIntent, invoice } = link
    const recorded = await findRecordedPayments(tx, [paymentIntent, invoice])
    const areCountedTwice = new Set(recorded.map(({ reference }) => reference)).size > 1
    if (areCountedTwice)
      problem = `${paymentIntent} and ${invoice} are the same payment, but are counted as two`
    await adjustRefundsOf(tx, [paymentIntent, invoice], deps)
  }
  return { ...applied, ...(problem && { problem }) }
}
