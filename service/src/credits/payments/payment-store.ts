import type { Tx } from '#platform/database.ts'

type NewPayment = { id: string; amount: bigint; recordedAt: Date }

export async function insertPayment(tx: Tx, organizationId: string, payment: NewPayment) {
  const { id, amount, recordedAt } = payment
  await tx
    .insertInto('payment')
    .values({ organization_id: organizationId, id, micro_usd: amount, recorded_at: recordedAt })
    .execute()
}

/** The payment, and how much of it has been refunded. */
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
