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

/** Whether a sink has so many dead letters. */
export async function hasDeadLetters(db: Db, sinkId: string, count: number): Promise<boolean> {
  const { rows } = await sql`
    select from export_dead_letter where sink_id = ${sinkId}
    order by org_seq offset ${count - 1} limit 1`.execute(db)
  return rows.length > 0
}
