import type { LedgerAccount, LedgerKind } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'

/** One credit is one micro-USD. */
export type Account = { posted: bigint; used: bigint; held: bigint }

const accountColumns = ['posted', 'used', 'held'] as const

/** Holds the account until the transaction ends: what is posted is computed from what is locked. */
export async function lockAccount(tx: Tx, organizationId: string): Promise<Account> {
  const row = await tx
    .selectFrom('credit_account')
    .select(accountColumns)
    .where('organization_id', '=', organizationId)
    .forUpdate()
    .executeTakeFirstOrThrow()
  return accountOf(row)
}

export async function findAccount(db: Db, organizationId: string): Promise<Account | undefined> {
  const row = await db
    .selectFrom('credit_account')
    .select(accountColumns)
    .where('organization_id', '=', organizationId)
    .executeTakeFirst()
  return row && accountOf(row)
}

const accountOf = (row: { posted: string; used: string; held: string }): Account => ({
  ...{ posted: BigInt(row.posted), used: BigInt(row.used), held: BigInt(row.held) },
})

export async function setPosted(tx: Tx, organizationId: string, posted: bigint) {
  await tx
    .updateTable('credit_account')
    .set({ posted })
    .where('organization_id', '=', organizationId)
    .executeTakeFirstOrThrow()
}

export type NewEntry = {
  id: string
  debit: LedgerAccount
  credit: LedgerAccount
  amount: bigint
  kind: LedgerKind
  meta: Record<string, string>
}

export async function insertEntry(tx: Tx, organizationId: string, entry: NewEntry) {
  const { meta, ...columns } = entry
  await tx
    .insertInto('ledger_entry')
    .values({ organization_id: organizationId, ...columns, meta: JSON.stringify(meta) })
    .execute()
}

export async function findEntry(tx: Tx, organizationId: string, id: string) {
  const row = await tx
    .selectFrom('ledger_entry')
    .select(['kind', 'amount'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row && { kind: row.kind, amount: BigInt(row.amount) }
}

type NewPayment = { id: string; amount: bigint; recordedAt: Date }

export async function insertPayment(tx: Tx, organizationId: string, payment: NewPayment) {
  const { id, amount, recordedAt } = payment
  await tx
    .insertInto('payment')
    .values({ organization_id: organizationId, id, micro_usd: amount, recorded_at: recordedAt })
    .execute()
}

/** The payment, and how much of it was paid back. */
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
