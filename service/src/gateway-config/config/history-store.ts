import { sql } from 'kysely'

import type { GatewayHistoryKind } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'
import { type BoundedPage, readBoundedPage } from '#platform/keyset.ts'

/** What was saved or simulated, and by whom. */
export type HistoryRow = {
  id: string
  kind: GatewayHistoryKind
  revision: number | null
  actor: string
  content: object
  created_at: Date
}

/** How many entries of each kind are kept. */
const entriesMax = 50

/** Adds an entry and removes the oldest of its kind. The organization is locked, so that there are never more. */
export async function addToHistory(tx: Tx, organizationId: string, entry: HistoryRow) {
  await tx
    .insertInto('gateway_history')
    .values({ ...entry, organization_id: organizationId, content: JSON.stringify(entry.content) })
    .execute()
  await sql`
    delete from gateway_history
    where organization_id = ${organizationId} and kind = ${entry.kind} and seq <= (
      select seq from gateway_history
      where organization_id = ${organizationId} and kind = ${entry.kind}
      order by seq desc offset ${entriesMax} limit 1
    )`.execute(tx)
}

const columns = ['id', 'kind', 'revision', 'actor', 'content', 'created_at'] as const

export async function findHistoryEntry(
  db: Db,
  organizationId: string,
  id: string,
): Promise<HistoryRow | undefined> {
  const row = await db
    .selectFrom('gateway_history')
    .select(columns)
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row && toEntry(row)
}

/** Where an entry is in the order of the history. */
export async function findPlace(
  db: Db,
  organizationId: string,
  id: string,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('gateway_history')
    .select('seq')
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row?.seq
}

type Page = { after: string | undefined; limit: number; order: 'asc' | 'desc' }

/** A page may have fewer entries than `limit`, because it ends at a number of bytes. */
export async function listHistoryEntries(
  db: Db,
  organizationId: string,
  { after, limit, order }: Page,
): Promise<BoundedPage<HistoryRow>> {
  const [side, direction] = order === 'asc' ? [sql`>`, sql`asc`] : [sql`<`, sql`desc`]
  const beyond = after === undefined ? sql`` : sql`and seq ${side} ${after}::bigint`
  const entries = sql`
    select id, kind, revision, actor, content, created_at, seq,
      octet_length(content::text) + 300 as bytes
    from gateway_history where organization_id = ${organizationId} ${beyond}
    order by seq ${direction} limit ${limit + 1}`
  return readBoundedPage(db, entries, { orderBy: sql`seq ${direction}`, limit })
}

const toEntry = (row: Omit<HistoryRow, 'content'> & { content: unknown }): HistoryRow => ({
  ...row,
  content: row.content as object, // by a constraint of the table
})
