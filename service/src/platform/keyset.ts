import { sql } from 'kysely'

/** The place of an item in a list ordered by time of creation, then id. */
export type Position = { id: string; created_at: Date }

export type Page = { after: Position | undefined; limit: number; order: 'asc' | 'desc' }

/** A list continues behind the item it ended with, whatever was added or removed meanwhile. */
export function isAfter({ after, order }: Page) {
  if (!after) return sql<boolean>`true`
  const side = order === 'asc' ? sql`>` : sql`<`
  return sql<boolean>`(created_at, id) ${side} (${after.created_at}, ${after.id})`
}
