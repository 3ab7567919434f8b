import { sql } from 'kysely'

import type { Db } from '#platform/database.ts'

import { conditionsOf, type EventFilters } from './event-filter-store.ts'
import { boundsOf } from './event-time-store.ts'

/** From a moment on, and before another one. */
export type Span = { from: Date; to: Date }

/**
 * How many events lie in each of the spans, in their order. Each span is a range of an index, so the events of an organization
 * are counted without being read, where there is no filter.
 */
export async function countEvents(
  db: Db,
  organizationId: string,
  filters: EventFilters,
  spans: readonly Span[],
): Promise<number[]> {
  if (spans.length === 0) return []
  const bounds = spans.map(boundsOf)
  const { rows } = await sql<{ count: number }>`
    select counted.count
    from unnest(
      ${bounds.map(({ lower }) => lower)}::uuid[], ${bounds.map(({ upper }) => upper)}::uuid[],
      ${bounds.map(({ firstDay }) => firstDay)}::date[], ${bounds.map(({ lastDay }) => lastDay)}::date[]
    ) with ordinality as span (lower, upper, first_day, last_day, number)
    cross join lateral (
      select count(*)::integer as count from event
      where ${sql.join(conditionsOf(organizationId, filters), sql` and `)}
        and day >= span.first_day and day <= span.last_day and id > span.lower and id < span.upper
    ) as counted
    order by span.number`.execute(db)
  return rows.map(({ count }) => count)
}
