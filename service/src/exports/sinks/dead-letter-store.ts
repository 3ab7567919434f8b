import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'

export type DeadLetter = { orgSeq: number; eventDay: string; eventId: string; error: string }

/** An event that was requeued and is refused once more has its dead letter again. */
export async function addDeadLetters(tx: Tx, sinkId: string, letters: readonly DeadLetter[]) {
  if (letters.length === 0) return
  const column = (read: (letter: DeadLetter) => unknown) => letters.map(read)
  await sql`
    insert into export_dead_letter as dead
      (sink_id, org_seq, event_day, event_id, error, attempts, created_at)
    select ${sinkId}, refused.*, 1, now() from unnest(
      ${column((letter) => letter.orgSeq)}::bigint[], ${column((letter) => letter.eventDay)}::date[],
      ${column((letter) => letter.eventId)}::uuid[], ${column((letter) => letter.error)}::text[]
    ) as refused
    on conflict (sink_id, org_seq) do update
      set error = excluded.error, attempts = dead.attempts + 1`.execute(tx)
}

type Span = { first: number; last: number }

/** How many events of these numbers are dead letters. */
export async function countDeadLetters(db: Db, sinkId: string, { first, last }: Span) {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from export_dead_letter
    where sink_id = ${sinkId} and org_seq between ${first} and ${last}`.execute(db)
  return rows[0]?.count ?? 0
}

/** Whether a sink has at least this many dead letters. */
export async function hasDeadLetters(db: Db, sinkId: string, count: number): Promise<boolean> {
  const { rows } = await sql`
    select from export_dead_letter where sink_id = ${sinkId}
    order by org_seq offset ${count - 1} limit 1`.execute(db)
  return rows.length > 0
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
  { sinkId, organizationId }: { sinkId: string; organizationId: string },
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
  { sinkId, organizationId }: { sinkId: string; organizationId: string },
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
    select org_seq::float8 as "orgSeq", coalesce(
      (select entry.day from audit_log as entry
        where entry.organization_id = ${organizationId} and entry.org_seq = taken.org_seq limit 1),
      event_day - 1
    )::text as day
    from taken order by org_seq`.execute(tx)
  return rows
}
