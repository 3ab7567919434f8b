import { sql } from 'kysely'

import type { Tx } from '#platform/database.ts'

type NewPayment = { id: string; amount: bigint; recordedAt: Date }

export async function insertPayment(tx: Tx, organizationId: string, payment: NewPayment) {
  const { id, amount, recordedAt } = payment
  await tx
    .insertInto('payment')
    .values({ organization_id: organizationId, id, micro_usd: amount, recorded_at: recordedAt })
    .execute()
}

/** The payment, and how much of it has been refunded, without refunds that were undone. */
export async function findPayment(tx: Tx, organizationId: string, id: string) {
  const row = await tx
    .selectFrom('payment')
    .select(({ selectFrom }) => [
      'micro_usd',
      selectFrom('refund')
        .select(({ fn }) => fn.sum<string | null>('micro_usd').as('sum'))
        .where('refund.organization_id', '=', organizationId)
        .where('refund.payment_id', '=', id)
        .as('refunded'),
    ])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row && { amount: BigInt(row.micro_usd), refunded: BigInt(row.refunded ?? 0) }
}

type NewRefund = NewPayment & { paymentId: string }

export async function insertRefund(tx: Tx, organizationId: string, refund: NewRefund) {
  const { id, paymentId, amount, recordedAt } = refund
  const columns = { organization_id: organizationId, id, payment_id: paymentId }
  await tx
    .insertInto('refund')
    .values({ ...columns, micro_usd: amount, recorded_at: recordedAt })
    .execute()
}

export async function findRefund(tx: Tx, organizationId: string, id: string) {
  const row = await tx
    .selectFrom('refund')
    .select(['payment_id', 'micro_usd'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row && { paymentId: row.payment_id, amount: BigInt(row.micro_usd) }
}

/** What an actor has refunded of a payment and not undone, and how many entries all actors have made for it. */
export async function sumRefundsBy(tx: Tx, organizationId: string, paymentId: string, by: string) {
  const { rows } = await sql<{ sum: string; count: string }>`
    select coalesce(sum(micro_usd) filter (where meta->>'by' = ${by}), 0)::text as sum,
      count(*)::text as count
    from refund join ledger_entry using (organization_id, id)
    where organization_id = ${organizationId} and payment_id = ${paymentId}`.execute(tx)
  return { sum: BigInt(rows[0]?.sum ?? 0), count: Number(rows[0]?.count ?? 0) }
}

/** What refunds of a payment have written off and not undone. */
export async function sumWrittenOff(
  tx: Tx,
  organizationId: string,
  paymentId: string,
): Promise<bigint> {
  const { rows } = await sql<{ sum: string }>`
    select coalesce(sum(case when credit = 'refund' then amount else -amount end), 0)::text as sum
    from refund join ledger_entry entry on entry.organization_id = refund.organization_id
      and entry.id = refund.id || ':writeoff'
    where refund.organization_id = ${organizationId} and payment_id = ${paymentId}`.execute(tx)
  return BigInt(rows[0]?.sum ?? 0)
}
