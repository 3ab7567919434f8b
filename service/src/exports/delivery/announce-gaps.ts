import { sql } from 'kysely'

import { insertEvents } from '#audit/event-store.ts'
import { buildRevisionEvent, gatehouse } from '#audit/event.ts'
import type { DroppedDays } from '#audit/partitions/partition-store.ts'
import type { Tx } from '#platform/database.ts'

type Gap = { sinkId: string; organizationId: string; from: number; to: number; events: number }

/**
 * Writes an event for each sink that has not got all events of these days, which are about to be dropped: it will never get
 * them. The sink gets that event in their place. Dead letters of these days cannot be requeued any more, so they go too.
 */
export async function announceGaps(tx: Tx, days: DroppedDays, now: Date) {
  const gaps = await findGaps(tx, days)
  await sql`delete from export_dead_letter where event_day < ${days.end}::date`.execute(tx)
  await insertEvents(
    tx,
    gaps.map(({ sinkId, organizationId, from, to, events }) =>
      buildRevisionEvent(
        {
          organizationId,
          by: gatehouse,
          action: 'gap',
          before: null,
          after: { id: sinkId, object: 'policy_gateway.export' },
          facts: { from_seq: from, to_seq: to, events },
        },
        now,
      ),
    ),
  )
}

async function findGaps(tx: Tx, { first, end }: DroppedDays): Promise<Gap[]> {
  // Compiling the statement for every partition takes PostgreSQL sixty times as long as running it.
  await sql`select set_config('jit', 'off', true)`.execute(tx)
  // Each cursor looks into the log by key: joined otherwise, the whole log would be read for the few sinks that lag.
  const { rows } = await sql<Gap>`
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
