import { lockOrganization } from '#access/organizations/organization-store.ts'
import { findEntry } from '#credits/ledger-store.ts'
import { findAliases } from '#credits/payments/payment-link-store.ts'
import { findPayment, sumRefundsBy } from '#credits/payments/payment-store.ts'
import { refundPaymentIn, undoRefundsIn } from '#credits/payments/refunds.ts'
import type { Tx } from '#platform/database.ts'

import { findCharges, saveCharge, saveChargeReport, setChargeCounted } from './charge-store.ts'
import { applied, type ApplyDeps, type ApplyResult } from './event-outcome.ts'
import { findKnownPayment, type KnownPayment } from './known-payment.ts'
import type { ChargeEffect } from './read-event.ts'
import { findCharged, listReferences } from './report-store.ts'
import { computeRefund, sumTakenBack } from './taken-back.ts'

// Refunds, failed refunds and disputes. None of them is posted by itself: all reports about the charges of a
// payment are stored, and the credits that were taken back are brought to what the reports add up to. So the
// order and the number of the reports make no difference.

export async function applyChargeReport(
  tx: Tx,
  effect: ChargeEffect,
  asOf: Date,
  deps: ApplyDeps,
): Promise<ApplyResult> {
  const { paymentIntent, invoice } = await saveCharge(tx, effect, deps.now())
  await saveChargeReport(tx, effect, asOf)
  const payment = await findKnownPayment(tx, [paymentIntent, invoice])
  if (!payment) return { outcome: 'waiting' }
  await adjustRefunds(tx, payment, deps)
  return applied
}

/** For all payments that are known by one of these ids. */
export async function adjustRefundsOf(tx: Tx, references: readonly string[], deps: ApplyDeps) {
  await findKnownPayment(tx, references)
  for (const payment of await listReferences(tx, references)) await adjustRefunds(tx, payment, deps)
}

async function adjustRefunds(tx: Tx, known: KnownPayment, deps: ApplyDeps) {
  const { organizationId, reference: paymentId } = known
  const charges = await findChargesOf(tx, known)
  if (charges.length === 0) return
  // Locked before the sums are read: the operator may be refunding the same payment.
  await lockOrganization(tx, organizationId)
  const payment = await findPayment(tx, organizationId, paymentId)
  if (!payment) return
  const posted = await sumRefundsBy(tx, organizationId, paymentId, deps.by.id)
  const wanted = computeRefund({
    credited: payment.amount,
    charged: (await findCharged(tx, paymentId)) ?? payment.amount,
    takenBack: charges.reduce((sum, charge) => sum + sumTakenBack(charge), 0n),
    refundedByOthers: payment.refunded - posted.sum,
  })
  const change = wanted - posted.sum
  if (change !== 0n) {
    const id = await findFreeId(tx, known, posted.count + 1)
    const refund = { id, paymentId, amount: change < 0n ? -change : change }
    await (change < 0n ? undoRefundsIn : refundPaymentIn)(tx, organizationId, refund, deps)
  }
  for (const { charge } of charges) await setChargeCounted(tx, charge, organizationId)
}

/** Two payments may turn out to be one: a charge counts for one of them only. */
async function findChargesOf(tx: Tx, { reference }: KnownPayment) {
  const found = await findCharges(tx, [reference, ...(await findAliases(tx, reference))])
  const own: typeof found = []
  for (const charge of found) {
    const owner = await findKnownPayment(tx, [charge.paymentIntent, charge.invoice])
    if (owner?.reference === reference) own.push(charge)
  }
  return own
}

/** `pi_1:refund-2` for the second entry. The operator may have chosen that id already. */
async function findFreeId(
  tx: Tx,
  { organizationId, reference }: KnownPayment,
  number: number,
): Promise<string> {
  const id = `${reference}:refund-${number}`
  const isTaken = (await findEntry(tx, organizationId, id)) !== undefined
  return isTaken ? findFreeId(tx, { organizationId, reference }, number + 1) : id
}
