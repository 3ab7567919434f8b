import { sql } from 'kysely'

import type { DroppedDays } from '#audit/partitions/partition-store.ts'
import type { Tx } from '#platform/database.ts'

/** Events that a sink has not received. */
export type MissedEvents = {
  sinkId: string
  organizationId: string
  from: number
  to: number
  events: number
}

/** Deletes the dead letters of days that are about to be dropped. */
export async function dropDeadLetters(tx: Tx, { end }: DroppedDays): Promise<MissedEvents[]> {
  const { rows } = await sql<MissedEvents>`
    with dropped as (
      delete from export_dead_letter where event_day < ${end}::date returning sink_id, org_seq
    )
    select s.id as "sinkId", s.organization_id as "organizationId", min(d.org_seq)::float8 as from,
      max(d.org_seq)::float8 as to, count(*)::float8 as events
    from dropped as d join export_sink as s on s.id = d.sink_id
    group by s.id order by s.id`.execute(tx)
  return rows
}

/** What sinks and replays have not received of these days. */
export async function findNotSent(
  tx: Tx,
  { first, end }: DroppedDays,
): Promise<(MissedEvents & { isReplay: boolean })[]> {
  // Compiling the statement for every partition takes PostgreSQL sixty times as long as running it.
  await sql`select set_config('jit', 'off', true)`.execute(tx)
  const isAhead = sql`
    organization_id = c.organization_id and org_seq > c.org_seq
      and org_seq <= coalesce(c.end_seq, head.org_seq) and day >= c.day
      and event_day >= ${first}::date and event_day < ${end}::date`
  // Each cursor looks into the log by key: joined otherwise, the whole log would be read for the few sinks that lag. Nearly all
  // events are numbered within a day of their own, which bounds the scan; the others have an index.
  const { rows } = await sql<MissedEvents & { isReplay: boolean }>`
    select c.sink_id as "sinkId", c.organization_id as "organizationId", c.is_replay as "isReplay", gap.*
    from export_cursor as c
    join audit_head as head on head.organization_id = c.organization_id and head.org_seq > c.org_seq
    cross join lateral (
      select min(entry.org_seq)::float8 as from, max(entry.org_seq)::float8 as to, count(*)::float8 as events
      from (
        select org_seq from audit_log
        where ${isAhead} and day between ${first}::date - 1 and ${end}::date and abs(day - event_day) <= 1
        union all
        select org_seq from audit_log where ${isAhead} and abs(day - event_day) > 1
      ) as entry
    ) as gap
    where gap.events > 0`.execute(tx)
  return rows
}
