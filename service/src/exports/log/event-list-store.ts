import { type RawBuilder, sql } from 'kysely'

import type { Db } from '#platform/database.ts'
import { firstUuidAt, momentOfUuid } from '#platform/id.ts'
import { type BoundedPage, readBoundedPage } from '#platform/keyset.ts'

/** Which events are asked for. */
export type EventFilters = {
  kind?: 'enforcement' | 'simulation' | 'revision' | undefined
  policyId?: string | undefined
  projectId?: string | undefined
  decision?: string | undefined
  /** The first moment. */
  from?: Date | undefined
  /** The moment after the last. */
  to?: Date | undefined
}

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
 * A page may have fewer events than `limit`, because it ends at a number of bytes. An id begins with the time of its event, so events are in the order of
 * their ids. Conditions are written as those of the indexes in migrations/0020.
 */
export async function listEvents(
  db: Db,
  organizationId: string,
  filters: EventFilters,
  { after, limit, order }: EventPage,
): Promise<BoundedPage<ListedEvent>> {
  const [side, direction] = order === 'asc' ? [sql`>`, sql`asc`] : [sql`<`, sql`desc`]
  const conditions = [
    sql`organization_id = ${organizationId}`,
    ...conditionsOf(filters),
    ...(after === undefined ? [] : [sql`id ${side} ${after}::uuid`]),
  ]
  const events = sql`
    select id, kind, organization_id as "organizationId", at, header, payload, payload_hash as "payloadHash",
      ${bytesOfEvent} as bytes
    from event where ${sql.join(conditions, sql` and `)}
    order by id ${direction} limit ${limit + 1}`
  return readBoundedPage(db, events, { orderBy: sql`id ${direction}`, limit })
}

/** At least as many as an event has in JSON: the rest are its ids, hashes and the names of members. */
export const bytesOfEvent = sql<number>`(
  octet_length(header::text) + coalesce(octet_length(payload), 0) + 800
)`

function conditionsOf(filters: EventFilters): RawBuilder<unknown>[] {
  const { kind, policyId, projectId, decision, from, to } = filters
  const conditions: RawBuilder<unknown>[] = []
  if (kind !== undefined) conditions.push(sql`kind = ${kind}`)
  if (kind !== undefined && kind !== 'enforcement') conditions.push(sql`kind <> 'enforcement'`)
  if (policyId !== undefined) conditions.push(sql`header->>'policy_id' = ${policyId}`)
  if (projectId !== undefined) conditions.push(sql`header->>'project_id' = ${projectId}`)
  if (decision !== undefined) conditions.push(isDecision(decision))
  // The day says which partitions have to be looked at.
  if (from) conditions.push(sql`day >= ${dayOf(from)}::date and id >= ${firstUuidAt(from)}::uuid`)
  if (to) conditions.push(sql`day <= ${dayOf(to)}::date and id < ${firstUuidAt(to)}::uuid`)
  return conditions
}

/** Of what is allowed no index and so no statistics exist. PostgreSQL would take it for rare, read everything and sort it. */
const isDecision = (decision: string) =>
  decision === 'allow'
    ? sql`case when header->>'decision' = 'allow' then true else false end`
    : sql`header->>'decision' = ${decision} and header->>'decision' <> 'allow'`

const dayOf = (moment: Date) => moment.toISOString().slice(0, 10)

/** Whether the organization has this event, by the partition of the day that its id names. */
export async function hasEvent(db: Db, organizationId: string, id: string): Promise<boolean> {
  const day = dayOfId(id)
  if (day === undefined) return false
  const { rows } = await sql`
    select from event where day = ${day}::date and id = ${id}::uuid
      and organization_id = ${organizationId}`.execute(db)
  return rows.length > 0
}

/** The year 9999: later ones have more digits than PostgreSQL's dates are written with here. */
const lastMs = 253_402_300_799_999

function dayOfId(id: string): string | undefined {
  const moment = momentOfUuid(id)
  return moment && moment.getTime() <= lastMs ? dayOf(moment) : undefined
}
