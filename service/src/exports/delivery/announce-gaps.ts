import { sql } from 'kysely'

import { insertEvents } from '#audit/event-store.ts'
import { buildRevisionEvent, gatehouse } from '#audit/event.ts'
import type { DroppedDays } from '#audit/partitions/partition-store.ts'
import type { Tx } from '#platform/database.ts'

type Missed = { sinkId: string; organizationId: string; from: number; to: number; events: number }

/**
 * Writes an event for each sink that has not got all events of these days, which are about to be dropped: it will never get
 * them. The sink gets that event in their place. Dead letters of these days cannot be requeued any more, so they go too, with
 * an event of their own.
 */
export async function announceGaps(tx: Tx, days: DroppedDays, now: Date) {
  const gapOf = (missed: Missed, cause: 'not_sent' | 'refused') =>
    buildRevisionEvent(
      {
        organizationId: missed.organizationId,
        by: gatehouse,
        action: 'gap',
        before: null,
        after: { id: missed.sinkId, object: 'policy_gateway.export' },
        facts: { cause, from_seq: missed.from, to_seq: missed.to, events: missed.events },
      },
      now,
    )
  const [notSent, refused] = [await findNotSent(tx, days), await dropDeadLetters(tx, days)]
  await insertEvents(tx, [
    ...notSent.map((missed) => gapOf(missed, 'not_sent')),
    ...refused.map((missed) => gapOf(missed, 'refused')),
  ])
}

async function dropDeadLetters(tx: Tx, { end }: DroppedDays): Promise<Missed[]> {
  const { rows } = await sql<Missed>`
    with dropped as (
      delete from export_dead_letter where event_day < ${end}::date returning sink_id, org_seq
    )
    select s.id as "sinkId", s.organization_id as "organizationId", min(d.org_seq)::float8 as from,
      max(d.org_seq)::float8 as to, count(*)::float8 as events
    from dropped as d join export_sink as s on s.id = d.sink_id
    group by s.id order by s.id`.execute(tx)
  return rows
}

async function findNotSent(tx: Tx, { first, end }: DroppedDays): Promise<Missed[]> {
  // Compiling the statement for every partition takes PostgreSQL sixty times as long as running it.
  await sql`select set_config('jit', 'off', true)`.execute(tx)
  // Each cursor looks into the log by key: joined otherwise, the whole log would be read for the few sinks that lag.
  const { rows } = await sql<Missed>`
    select c.sink_id as "sinkId", c.organization_id as "organizationId", gap.*
    from export_cursor as c
    join audit_head as head on head.organization_id = c.organization_id and head.org_seq > c.org_seq
    cross join lateral (
      select min(entry.org_seq)::float8 as from, max(entry.org_seq)::float8 as to, count(*)::float8 as events
      from audit_log as entry
      where entry.organization_id = c.organization_id and entry.org_seq > c.org_seq
        and entry.org_seq <= head.org_seq and entry.day >= c.day
        and entry.event_day >= ${first}::date and entry.event_day < ${end}::date
    ) as gap
    where not c.is_replay and gap.events > 0`.execute(tx)
  return rows
}
