import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'

/** Numbers of events, from the first to the last. */
export type SequenceRange = { first: number; last: number; day: string }

type Target = { sinkId: string; organizationId: string }

/** The number of the last event that the live delivery has passed. */
export async function findDelivered(tx: Tx, sinkId: string): Promise<number> {
  const { rows } = await sql<{ org_seq: number }>`
    select org_seq::float8 as org_seq from export_cursor
    where sink_id = ${sinkId} and not is_replay`.execute(tx)
  return rows[0]?.org_seq ?? 0
}

export async function countReplays(tx: Tx, sinkId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from export_cursor
    where sink_id = ${sinkId} and is_replay and org_seq < end_seq`.execute(tx)
  return rows[0]?.count ?? 0
}

/** Delivers the events of each range once more. */
export async function insertReplays(
  tx: Tx,
  { sinkId, organizationId }: Target,
  ranges: readonly SequenceRange[],
) {
  if (ranges.length === 0) return
  await sql`
    insert into export_cursor
      (sink_id, organization_id, is_replay, org_seq, end_seq, signed_size, day, next_at)
    select ${sinkId}, ${organizationId}, true, first - 1, last, 0, day, now()
    from jsonb_to_recordset(${JSON.stringify(ranges)}::jsonb) as (first bigint, last bigint, day date)
    order by first`.execute(tx)
}

type Wanted = {
  organizationId: string
  from: Date
  to: Date
  /** The number of the last event that may be in the range. */
  upTo: number
}

/**
 * The numbers of the events of a range of time. Events are numbered soon after they happen, and by the clock of the database:
 * the days of numbering that are looked at begin ten minutes before the range and end a day after it.
 */
export async function findRange(tx: Tx, wanted: Wanted): Promise<SequenceRange | undefined> {
  const [first] = await findEdge(tx, wanted, 'asc')
  const [last] = await findEdge(tx, wanted, 'desc')
  return first && last && { first: first.orgSeq, last: last.orgSeq, day: first.day }
}

async function findEdge(tx: Tx, wanted: Wanted, order: 'asc' | 'desc') {
  const { organizationId, from, to, upTo } = wanted
  const direction = order === 'asc' ? sql`asc` : sql`desc`
  const { rows } = await sql<{ orgSeq: number; day: string }>`
    select org_seq::float8 as "orgSeq", day::text as day from audit_log
    where organization_id = ${organizationId} and org_seq <= ${upTo}
      and day >= (${from}::timestamptz at time zone 'UTC' - interval '10 minutes')::date
      and day <= (${to}::timestamptz at time zone 'UTC' + interval '1 day')::date
      and event_id >= ${firstIdAt(from)}::uuid and event_id < ${firstIdAt(to)}::uuid
    order by org_seq ${direction} limit 1`.execute(tx)
  return rows
}

/** The lowest id that an event of this moment can have. */
function firstIdAt(moment: Date): string {
  const hex = Math.max(0, moment.getTime()).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

export type DeadLetterRow = {
  eventId: string
  orgSeq: number
  error: string
  attempts: number
  createdAt: Date
}

export type DeadLetterPage = { after: number | undefined; limit: number; order: 'asc' | 'desc' }

/** Returns one dead letter more than `limit` if there are more. */
export async function listDeadLetters(
  db: Db,
  sinkId: string,
  { after, limit, order }: DeadLetterPage,
): Promise<DeadLetterRow[]> {
  const [side, direction] = order === 'asc' ? [sql`>`, sql`asc`] : [sql`<`, sql`desc`]
  const isAfter = after === undefined ? sql`true` : sql`org_seq ${side} ${after}`
  const { rows } = await sql<DeadLetterRow>`
    select event_id as "eventId", org_seq::float8 as "orgSeq", error, attempts, created_at as "createdAt"
    from export_dead_letter where sink_id = ${sinkId} and ${isAfter}
    order by org_seq ${direction} limit ${limit + 1}`.execute(db)
  return rows
}

/** The number of an event. One that was requeued meanwhile is still a place in the list. */
export async function findSequence(
  db: Db,
  { sinkId, organizationId }: Target,
  eventId: string,
): Promise<number | undefined> {
  const { rows } = await sql<{ orgSeq: number }>`
    (select org_seq::float8 as "orgSeq" from export_dead_letter
      where sink_id = ${sinkId} and event_id = ${eventId}::uuid)
    union all
    (select org_seq::float8 from audit_log
      where event_id = ${eventId}::uuid and organization_id = ${organizationId})
    limit 1`.execute(db)
  return rows[0]?.orgSeq
}

/**
 * Removes dead letters: those of these events, or the first ones. Returns their numbers in order, with a day before which
 * none of them was numbered.
 */
export async function takeDeadLetters(
  tx: Tx,
  sinkId: string,
  { eventIds, limit }: { eventIds: readonly string[] | undefined; limit: number },
): Promise<{ orgSeq: number; day: string }[]> {
  const isWanted = eventIds ? sql`event_id = any(${eventIds}::uuid[])` : sql`true`
  const { rows } = await sql<{ orgSeq: number; day: string }>`
    with taken as (
      delete from export_dead_letter where sink_id = ${sinkId} and org_seq in (
        select org_seq from export_dead_letter where sink_id = ${sinkId} and ${isWanted}
        order by org_seq limit ${limit}
      )
      returning org_seq, event_day
    )
    select org_seq::float8 as "orgSeq", (event_day - 1)::text as day from taken
    order by org_seq`.execute(tx)
  return rows
}
