import { sql } from 'kysely'

import type { Tx } from '#platform/database.ts'

import type { ChargeEffect, PaymentLink } from './read-event.ts'
import type { ChargeReports } from './taken-back.ts'

// What Stripe has reported about charges that were refunded or disputed. Each report can be stored again.

/** Whose payment the charge is, by the ids that Stripe has for it. */
export type ChargedPayment = { paymentIntent: string | null; invoice: string | null }

/** Returns what is known by now about the payment of the charge. */
export async function saveCharge(
  tx: Tx,
  effect: ChargeEffect,
  reportedAt: Date,
): Promise<ChargedPayment> {
  const { charge, paymentIntent, invoice } = effect
  const refunded = effect.kind === 'refund' ? effect.microUsd : 0
  const { rows } = await sql<ChargedPayment>`
    insert into payment_refund as known (charge, payment_intent, invoice, micro_usd, reported_at)
    values (${charge}, ${paymentIntent},
      coalesce(${invoice}, (select invoice from payment_link where payment_intent = ${paymentIntent})),
      ${refunded}, ${reportedAt})
    on conflict (charge) do update set
      micro_usd = greatest(known.micro_usd, excluded.micro_usd),
      payment_intent = coalesce(known.payment_intent, excluded.payment_intent),
      invoice = coalesce(known.invoice, excluded.invoice)
    returning payment_intent as "paymentIntent", invoice`.execute(tx)
  return rows[0] ?? { paymentIntent, invoice }
}

/** `asOf` is when Stripe has made the report. */
export async function saveChargeReport(tx: Tx, effect: ChargeEffect, asOf: Date) {
  const { charge, microUsd } = effect
  switch (effect.kind) {
    case 'refund':
      await sql`insert into payment_refund_report (charge, as_of, micro_usd)
        values (${charge}, ${asOf}, ${microUsd}) on conflict do nothing`.execute(tx)
      return
    case 'failed_refund':
      await sql`
        insert into payment_refund_failure as known (refund, charge, micro_usd, failed_at)
        values (${effect.refund}, ${charge}, ${microUsd}, ${asOf})
        on conflict (refund) do update set failed_at = least(known.failed_at, excluded.failed_at)
      `.execute(tx)
      return
    case 'dispute':
      await sql`
        insert into payment_dispute as known (id, charge, micro_usd, is_ended, is_won, as_of)
        values (${effect.dispute}, ${charge}, ${microUsd}, ${effect.isEnded}, ${effect.isWon}, ${asOf})
        on conflict (id) do update set micro_usd = excluded.micro_usd,
          is_ended = excluded.is_ended, is_won = excluded.is_won, as_of = excluded.as_of
        where (known.is_ended, known.as_of, known.is_won, known.micro_usd)
          < (excluded.is_ended, excluded.as_of, excluded.is_won, excluded.micro_usd)`.execute(tx)
  }
}

/** For charges that were reported before the link between their payment intent and its invoice. */
export async function setChargeInvoice(tx: Tx, { paymentIntent, invoice }: PaymentLink) {
  await tx
    .updateTable('payment_refund')
    .set({ invoice })
    .where('payment_intent', '=', paymentIntent)
    .where('invoice', 'is', null)
    .execute()
}

type ReportedCharge = ChargedPayment & ChargeReports & { charge: string }

/** The charges of a payment with any of these ids, and everything that was reported about them. */
export async function findCharges(
  tx: Tx,
  references: readonly string[],
): Promise<ReportedCharge[]> {
  const charges = await tx
    .selectFrom('payment_refund')
    .select(['charge', 'payment_intent as paymentIntent', 'invoice', 'micro_usd'])
    .where(({ or, eb }) =>
      or([eb('payment_intent', 'in', references), eb('invoice', 'in', references)]),
    )
    .orderBy('charge')
    .execute()
  const found: ReportedCharge[] = []
  for (const { micro_usd, ...charge } of charges) {
    found.push({ ...charge, ...(await findReports(tx, charge.charge, BigInt(micro_usd))) })
  }
  return found
}

/** `largest`: releases before this one have stored only the largest sum of refunds, without its time. */
async function findReports(tx: Tx, charge: string, largest: bigint): Promise<ChargeReports> {
  const refunded = await tx
    .selectFrom('payment_refund_report')
    .select(['micro_usd', 'as_of'])
    .where('charge', '=', charge)
    .execute()
  const failedRefunds = await tx
    .selectFrom('payment_refund_failure')
    .select(['micro_usd', 'failed_at'])
    .where('charge', '=', charge)
    .execute()
  const disputes = await tx
    .selectFrom('payment_dispute')
    .select(['micro_usd', 'is_won'])
    .where('charge', '=', charge)
    .execute()
  return {
    refunded: [
      { sum: largest, asOf: null },
      ...refunded.map((row) => ({ sum: BigInt(row.micro_usd), asOf: row.as_of })),
    ],
    failedRefunds: failedRefunds.map((row) => ({
      amount: BigInt(row.micro_usd),
      failedAt: row.failed_at,
    })),
    disputes: disputes.map((row) => ({ amount: BigInt(row.micro_usd), isWon: row.is_won })),
  }
}

/** The payment of the charge is known, and what was reported about it has taken effect. */
export async function setChargeCounted(tx: Tx, charge: string, organizationId: string) {
  await sql`update payment_refund set is_counted = true, posted_micro_usd = micro_usd
    where charge = ${charge}`.execute(tx)
  await tx
    .updateTable('payment_event')
    .set({ state: 'applied', organization_id: organizationId })
    .where('charge', '=', charge)
    .where('state', '=', 'waiting')
    .execute()
}
