import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'

/** Processes report every few seconds. One that has not for this long is not live any more. */
export const liveSeconds = 15

export type ProcessReport = {
  id: string
  startedAt: Date
  /** The snapshot of the last poll whose changes are all in force here. */
  applied: string | null
  /** Organizations whose newest policies could not be put in force, with the epoch that still is. */
  failures: ReadonlyMap<string, number>
  facts: ProcessFacts
}

/** What a process says of itself besides. */
export type ProcessFacts = {
  release: string
  isReady: boolean
  /** Whether it counts limits in its own memory. */
  countsLocally: boolean
}

/** Reports that the process is live and what it has applied; returns how many others are live. */
export async function reportProcess(
  db: Db,
  { id, startedAt, applied, failures, facts }: ProcessReport,
): Promise<number> {
  const failing = JSON.stringify(Object.fromEntries(failures))
  const { rows } = await sql<{ others: number }>`
    with report as (
      insert into api_process (id, started_at, seen_at, applied, failures, release, is_ready, counts_locally)
      values (${id}, ${startedAt}, clock_timestamp(), ${applied}::text::pg_snapshot, ${failing}::jsonb, ${facts.release},
        ${facts.isReady}, ${facts.countsLocally})
      on conflict (id) do update set seen_at = excluded.seen_at, applied = excluded.applied,
        failures = excluded.failures, is_ready = excluded.is_ready, counts_locally = excluded.counts_locally
    )
    select count(*)::integer as others from api_process
    where id <> ${id} and seen_at > now() - make_interval(secs => ${liveSeconds})`.execute(db)
  return rows[0]?.others ?? 0
}

/** For a process that shuts down, so that rollouts do not wait for it. */
export async function forgetProcess(db: Db, id: string) {
  await db.deleteFrom('api_process').where('id', '=', id).execute()
}

/** Removes processes that have not reported for a day; returns how many. */
export async function sweepProcesses(tx: Tx, rowsMax: number): Promise<number> {
  const result = await sql`
    delete from api_process where id in (
      select id from api_process where seen_at < now() - interval '1 day' limit ${rowsMax}
    )`.execute(tx)
  return Number(result.numAffectedRows ?? 0)
}
