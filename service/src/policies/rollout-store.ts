import { sql } from 'kysely'

import { liveSeconds } from '#audit/process-store.ts'
import type { Db } from '#platform/database.ts'

/** Some processes of one standing: what they run, and whether it is what they should run. */
export type Standing = {
  processes: number
  isLive: boolean
  isApplied: boolean
  isFailed: boolean
  version: number | null
}

type Place = { organizationId: string; policyId: string }

/** Who has been silent for longer than this is not counted any more. */
const silentSeconds = 600

/**
 * What each process runs: the last step of the policy's history that it has seen. A process reports the
 * snapshot of its last poll, and a step knows its transaction, so PostgreSQL itself can tell. Steps that
 * are older than an hour have been seen by everybody who is live; transaction ids do not survive a
 * restore from a dump, times do.
 */
export async function readStandings(
  db: Db,
  { organizationId, policyId }: Place,
): Promise<Standing[]> {
  const { rows } = await sql<Standing>`
    with step as (
      select epoch, version, xid, at from policy_epoch
      where organization_id = ${organizationId} and policy_id = ${policyId}
      order by epoch desc limit 1000
    ), standing as (
      select api_process.seen_at > now() - make_interval(secs => ${liveSeconds}) as is_live,
        api_process.failures ? ${organizationId} as is_failed,
        (
          select step.epoch from step
          where (step.at < now() - interval '1 hour'
              or pg_visible_in_snapshot(step.xid, api_process.applied))
            and step.epoch <= coalesce((api_process.failures ->> ${organizationId})::bigint, step.epoch)
          order by step.epoch desc limit 1
        ) as epoch
      from api_process
      where api_process.seen_at > now() - make_interval(secs => ${silentSeconds})
    )
    select count(*)::integer as "processes", standing.is_live as "isLive",
      standing.is_failed as "isFailed",
      standing.epoch is not distinct from (select max(epoch) from step) as "isApplied",
      (select step.version from step where step.epoch = standing.epoch) as "version"
    from standing
    group by standing.is_live, standing.is_failed, standing.epoch`.execute(db)
  return rows
}
