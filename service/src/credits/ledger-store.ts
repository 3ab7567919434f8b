import type { LedgerKind } from '@gatehouse/contract/credits'
import { type Selectable, sql } from 'kysely'

import type { LedgerAccount, LedgerEntry } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'

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

export type LedgerRow = Selectable<LedgerEntry>

/** Entries are written under the lock of their account, so a new entry always comes last. */
export type LedgerPosition = { at: Date; seq: string }

export async function findLedgerPosition(
  db: Db,
  organizationId: string,
  id: string,
): Promise<LedgerPosition | undefined> {
  return db
    .selectFrom('ledger_entry')
    .select(['at', 'seq'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
}

export type LedgerPage = {
  after: LedgerPosition | undefined
  limit: number
  order: 'asc' | 'desc'
  projectId: string | undefined
  kind: LedgerKind | undefined
  from: Date | undefined
  to: Date | undefined
}

/** Returns one row more than `limit` if there are more. */
export async function listLedger(
  db: Db,
  organizationId: string,
  page: LedgerPage,
): Promise<LedgerRow[]> {
  const { after, limit, order, projectId, kind, from, to } = page
  const side = order === 'asc' ? sql`>` : sql`<`
  let query = db
    .selectFrom('ledger_entry')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .orderBy('at', order)
    .orderBy('seq', order)
    .limit(limit + 1)
  if (projectId !== undefined) query = query.where('project_id', '=', projectId)
  if (kind !== undefined) query = query.where('kind', '=', kind)
  if (from) query = query.where('at', '>=', from)
  if (to) query = query.where('at', '<', to)
  if (after)
    query = query.where(sql<boolean>`(at, seq) ${side} (${after.at}, ${after.seq}::bigint)`)
  return query.execute()
}
