import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'

import { sequenceEvents } from '#audit/log/sequence-events.ts'
import type { Db } from '#platform/database.ts'

/**
 * Numbers every event that is committed. Events wait for transactions that are older than theirs, also for those of another
 * database of the same server: a test that runs at the same time may hold them up.
 */
export async function numberAllEvents(db: Db) {
  for (;;) {
    const { events } = await sequenceEvents(db)
    if (events > 0) continue
    const { rows } = await sql`
      select from event join audit_cursor as done using (shard)
      where (event.xid, event.seq) > (done.xid, done.seq)
        and not exists (select from audit_log where audit_log.event_id = event.id)
      limit 1`.execute(db)
    if (rows.length === 0) return
    await sleep(5)
  }
}
