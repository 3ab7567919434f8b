import { sql } from 'kysely'

import type { Db } from '#platform/database.ts'
import { type BoundedPage, readBoundedPage } from '#platform/keyset.ts'

import { conditionsOf, countFilters, type EventFilters } from './event-filter-store.ts'
import { dayOfEvent, isWithin, type TimeRange } from './event-time-store.ts'

export type EventPage = { after: string | undefined; limit: number; order: 'asc' | 'desc' }

export type ListedEvent = {
  id: string
  kind: string
  organizationId: string
  at: Date
  header: Record<string, unknown>
  /** Null if it was erased. */
  payload: Buffer | null
  payloadHash: Buffer
}

/**
 * A page may have fewer events than `limit`, because it ends at a number of bytes. An id begins with the time of its event, so
 * events are in the order of their ids.
 *
 * Planning a query over the partitions of a month takes longer than executing it. Queries with at most one filter are
 * prepared: few enough that a connection can keep their plans.
 */
export async function listEvents(
  db: Db,
  organizationId: string,
  { from, to, ...filters }: EventFilters & TimeRange,
  { after, limit, order }: EventPage,
): Promise<BoundedPage<ListedEvent>> {
  const direction = order === 'asc' ? sql`asc` : sql`desc`
  const conditions = [
    ...conditionsOf(organizationId, filters),
    isWithin({ from, to }, { after, order }),
  ]
  // A number in the text: for a parameter PostgreSQL would plan to read a tenth of all events.
  const rowsMax = limit <= usualLimit ? usualLimit + 1 : largestLimit + 1
  const events = sql`
    select id, kind, organization_id as "organizationId", at, header, payload, payload_hash as "payloadHash",
      ${bytesOfEvent} as bytes
    from event where ${sql.join(conditions, sql` and `)}
    order by id ${direction} limit ${sql.lit(rowsMax)}`
  const isPrepared = countFilters(filters) <= 1
  return readBoundedPage(db, events, { orderBy: sql`id ${direction}`, limit, isPrepared })
}

const usualLimit = 20
const largestLimit = 100

/** At least as many as an event has in JSON: the rest are its ids, hashes and the names of members. */
export const bytesOfEvent = sql<number>`(
  octet_length(header::text) + coalesce(octet_length(payload), 0) + 800
)`

/** Whether the organization has this event, by the partition of the day that its id names. */
export async function hasEvent(db: Db, organizationId: string, id: string): Promise<boolean> {
  const day = dayOfEvent(id)
  if (day === undefined) return false
  const { rows } = await sql`
    select from event where day = ${day}::date and id = ${id}::uuid
      and organization_id = ${organizationId}`.execute(db)
  return rows.length > 0
}
