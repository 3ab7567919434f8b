import { sql } from 'kysely'

import type { Tx } from '#platform/database.ts'

import type { Effect, PaymentLink } from './read-event.ts'

export async function findReference(tx: Tx, references: readonly (string | null)[]) {
  const given = references.filter((reference) => reference !== null)
  if (given.length === 0) return undefined
  return tx
    .selectFrom('payment_reference')
    .select(['reference', 'organization_id as organizationId'])
    .where('reference', 'in', given)
    .orderBy('reference')
    .executeTakeFirst()
}

/** Payments with these ids, of any organization. The limit suffices to see whether there is more than one. */
export async function findRecordedPayments(tx: Tx, references: readonly (string | null)[]) {
  const given = references.filter((reference) => reference !== null)
  if (given.length === 0) return []
  return tx
    .selectFrom('payment')
    .select(['id as reference', 'organization_id as organizationId'])
    .where('id', 'in', given)
    .orderBy('id')
    .limit(1 + given.length)
    .execute()
}

export async function insertReference(tx: Tx, reference: string, organizationId: string) {
  await tx
    .insertInto('payment_reference')
    .values({ reference, organization_id: organizationId })
    .execute()
}

/** For refunds that were reported before the link between their payment intent and its invoice. */
export async function setRefundInvoice(tx: Tx, { paymentIntent, invoice }: PaymentLink) {
  await tx
    .updateTable('payment_refund')
    .set({ invoice })
    .where('payment_intent', '=', paymentIntent)
    .where('invoice', 'is', null)
    .execute()
}

type ReportedRefund = Extract<Effect, { kind: 'refund' }>

/** Each report has the sum of the charge's refunds so far: the largest counts. Returns what the charge paid. */
export async function raiseRefund(tx: Tx, refund: ReportedRefund, reportedAt: Date) {
  const { charge, paymentIntent, invoice, microUsd } = refund
  const { rows } = await sql<{ paymentIntent: string | null; invoice: string | null }>`
    insert into payment_refund as known (charge, payment_intent, invoice, micro_usd, reported_at)
    values (${charge}, ${paymentIntent},
      coalesce(${invoice}, (select invoice from payment_link where payment_intent = ${paymentIntent})),
      ${microUsd}, ${reportedAt})
    on conflict (charge) do update set
      micro_usd = greatest(known.micro_usd, excluded.micro_usd),
      payment_intent = coalesce(known.payment_intent, excluded.payment_intent),
      invoice = coalesce(known.invoice, excluded.invoice)
    returning payment_intent as "paymentIntent", invoice`.execute(tx)
  return rows[0] ?? { paymentIntent, invoice }
}

/** Refunds that are reported and not posted yet, by charge, payment intent or invoice. */
export async function findPendingRefunds(tx: Tx, references: readonly string[]) {
  const rows = await tx
    .selectFrom('payment_refund')
    .selectAll()
    .whereRef('posted_micro_usd', '<', 'micro_usd')
    .where(({ or, eb }) =>
      or([
        eb('charge', 'in', references),
        eb('payment_intent', 'in', references),
        eb('invoice', 'in', references),
      ]),
    )
    .orderBy('charge')
    .execute()
  return rows.map((row) => ({
    charge: row.charge,
    paymentIntent: row.payment_intent,
    invoice: row.invoice,
    amount: BigInt(row.micro_usd),
    posted: BigInt(row.posted_micro_usd),
  }))
}

export async function setRefundPosted(tx: Tx, charge: string, amount: bigint) {
  await tx
    .updateTable('payment_refund')
    .set({ posted_micro_usd: amount })
    .where('charge', '=', charge)
    .execute()
}

type ReportedSubscription = Extract<Effect, { kind: 'subscription' }> & {
  organizationId: string
  asOf: Date
}

/** Keeps the newest report; an end counts as the newest. */
export async function saveSubscription(tx: Tx, reported: ReportedSubscription) {
  const { subscription, organizationId, prices, isActive, isEnded, asOf, tie } = reported
  await sql`
    insert into payment_subscription as known
      (id, organization_id, prices, is_active, is_ended, as_of, tie)
    values (${subscription}, ${organizationId}, ${prices}, ${isActive}, ${isEnded}, ${asOf}, ${tie})
    on conflict (id) do update set organization_id = excluded.organization_id,
      prices = excluded.prices, is_active = excluded.is_active, is_ended = excluded.is_ended,
      as_of = excluded.as_of, tie = excluded.tie
    where (known.is_ended, known.as_of, known.tie) < (excluded.is_ended, excluded.as_of, excluded.tie)
  `.execute(tx)
}

export async function findSubscribedOrganization(
  tx: Tx,
  subscription: string,
): Promise<string | undefined> {
  const row = await tx
    .selectFrom('payment_subscription')
    .select('organization_id')
    .where('id', '=', subscription)
    .executeTakeFirst()
  return row?.organization_id
}

/** The prices of all active subscriptions. */
export async function listActivePrices(tx: Tx, organizationId: string): Promise<string[]> {
  const rows = await tx
    .selectFrom('payment_subscription')
    .select('prices')
    .where('organization_id', '=', organizationId)
    .where('is_active', '=', true)
    .execute()
  return rows.flatMap(({ prices }) => prices)
}
