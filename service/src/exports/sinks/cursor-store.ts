import { sql } from 'kysely'

import type { Tx } from '#platform/database.ts'
import { firstUuidAt } from '#platform/id.ts'

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
      and event_id >= ${firstUuidAt(from)}::uuid and event_id < ${firstUuidAt(to)}::uuid
    order by org_seq ${direction} limit 1`.execute(tx)
  return rows
}

/**
 * For a sink that was changed. A worker that is sending to it sends nothing more, and what it finds out about the sink as it was
 * before is not kept.
 */
export async function endLeases(tx: Tx, sinkId: string) {
  await sql`
    update export_cursor set lease_owner = null, lease_until = null where sink_id = ${sinkId}`.execute(
    tx,
  )
}

/** All of its cursors are tried at once, as if nothing had failed. */
export async function retryNow(tx: Tx, sinkId: string) {
  await sql`
    update export_cursor set attempt = 0, next_at = now() where sink_id = ${sinkId}`.execute(tx)
}

/** Objects that no digest has listed yet, and the last digest. */
export async function forgetObjects(tx: Tx, sinkId: string) {
  await sql`delete from export_object where sink_id = ${sinkId}`.execute(tx)
  await sql`
    update export_sink set digest_key = null, digest_sha256 = null where id = ${sinkId}`.execute(tx)
}
