import { sql } from 'kysely'

import type { Db } from '#platform/database.ts'

/** How the delivery to all enabled sinks goes. */
export type DeliveryTotals = {
  failing: number
  retrying: number
  pendingEvents: number
  /** The oldest event that an enabled sink has not got; null: there is none. */
  oldestEventId: string | null
}

export async function readDeliveryTotals(db: Db): Promise<DeliveryTotals> {
  const { rows } = await sql<DeliveryTotals>`
    with live as (
      select c.organization_id, c.state, c.day, c.org_seq, h.org_seq as head
      from export_cursor as c
      join export_sink as s on s.id = c.sink_id and s.enabled
      left join audit_head as h on h.organization_id = c.organization_id and h.org_seq > c.org_seq
      where not c.is_replay
    )
    select count(*) filter (where state = 'error')::integer as failing,
      count(*) filter (where state = 'retrying')::integer as retrying,
      coalesce(sum(head - org_seq), 0)::float8 as "pendingEvents",
      (
        select entry.event_id from live
        join lateral (
          select event_id from audit_log
          where organization_id = live.organization_id and audit_log.org_seq = live.org_seq + 1
            and audit_log.day >= live.day
        ) as entry on true
        where live.head is not null
        order by entry.event_id limit 1
      ) as "oldestEventId"
    from live`.execute(db)
  return rows[0] as DeliveryTotals
}
