import { sql } from 'kysely'

/** The position of an item in a list that is ordered by time of creation, then id. */
export type Position = { id: string; created_at: Date }

export type Page = { after: Position | undefined; limit: number; order: 'asc' | 'desc' }

/** The condition for the rows after the cursor, independent of rows added or removed since the last page. */
export function isAfter({ after, order }: Page) {
  if (!after) return sql<boolean>`true`
  const side = order === 'asc' ? sql`>` : sql`<`
  return sql<boolean>`(created_at, id) ${side} (${after.created_at}, ${after.id})`
}
