import { type RawBuilder, sql } from 'kysely'

import { type Db, executePrepared, type LocalSettings } from './database.ts'

/** The position of an item in a list that is ordered by time of creation, then id. */
export type Position = { id: string; created_at: Date }

export type Page = { after: Position | undefined; limit: number; order: 'asc' | 'desc' }

/** The condition for the rows after the cursor, independent of rows added or removed since the last page. */
export function isAfter({ after, order }: Page) {
  if (!after) return sql<boolean>`true`
  const side = order === 'asc' ? sql`>` : sql`<`
  return sql<boolean>`(created_at, id) ${side} (${after.created_at}, ${after.id})`
}

/** A page of rows that may be large ends here, however many it may have. */
const pageBytesMax = 4_000_000

type Bounds = {
  /** The columns of the query that say its order. */
  orderBy: RawBuilder<unknown>
  limit: number
  bytesMax?: number
  /** For queries of few texts, which are asked often and take long to plan: each is planned once per connection. */
  isPrepared?: boolean
  /** Whether not even the first row is wanted if it is larger than `bytesMax`. */
  mayBeEmpty?: boolean
}

/**
 * A plan that is kept is made without knowing how many rows lie between two bounds. PostgreSQL would expect few, read all and
 * sort them, where an index has them in their order.
 */
export const preparedPages = {
  enable_sort: 'off',
  plan_cache_mode: 'force_generic_plan',
} as const satisfies LocalSettings

export type BoundedPage<Row> = { rows: Row[]; hasMore: boolean }

/**
 * The first rows of a query, as many as `limit` and `bytesMax` allow, but at least one, however large it is, unless the page
 * may be empty. The query has to return at least one row more than `limit` if there are more, and the size of each row as `bytes`. PostgreSQL keeps large values outside of their
 * rows and only reads those of the rows that it returns, so what is left out costs neither side memory.
 */
export async function readBoundedPage<Row extends object>(
  db: Db,
  query: RawBuilder<unknown>,
  { orderBy, limit, bytesMax = pageBytesMax, mayBeEmpty = false, isPrepared = false }: Bounds,
): Promise<BoundedPage<Row>> {
  const alwaysTaken = mayBeEmpty ? 0 : 1
  const bounded = sql<Row & { found: number }>`
    select * from (
      select page.*, count(*) over ()::integer as found, row_number() over so_far as place,
        sum(bytes) over so_far as bytes_so_far
      from (${query}) as page
      window so_far as (order by ${orderBy} rows unbounded preceding)
    ) as bounded
    where place <= ${limit} and (place = ${alwaysTaken} or bytes_so_far <= ${bytesMax})
    order by ${orderBy}`
  const rows = isPrepared
    ? await executePrepared(db, preparedPages, bounded)
    : (await bounded.execute(db)).rows
  return { rows, hasMore: rows.length < (rows[0]?.found ?? 0) }
}
