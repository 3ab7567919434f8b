import { sql } from 'kysely'

import { liveSeconds } from '#audit/process-store.ts'
import type { Db } from '#platform/database.ts'

/** Processes that run the same version of a policy, or revision of the configuration; `isApplied`: the one they should run. */
export type ProcessGroup = {
  processes: number
  isLive: boolean
  isApplied: boolean
  isFailed: boolean
  version: number | null
}

/** A process that has not reported for longer than this is not counted any more. */
export const silentSeconds = 600

/** Whose history is looked at: a policy's, or with null that of the configuration of the policy gateway. */
type HistoryKey = { organizationId: string; policyId: string | null }

/**
 * Groups the processes by what they run: the last step of the history that each has seen. A
 * process reports the database snapshot of its last poll and a step holds its transaction id, so
 * PostgreSQL can compare the two. A step older than an hour counts as seen by every live process, because
 * transaction ids do not survive a restore from a dump.
 */
export async function readProcessGroups(
  db: Db,
  { organizationId, policyId }: HistoryKey,
): Promise<ProcessGroup[]> {
  const isOfHistory = policyId === null ? sql`policy_id is null` : sql`policy_id = ${policyId}`
  const { rows } = await sql<ProcessGroup>`
    with step as (
      select epoch, coalesce(version, gateway_revision) as version, xid, at from policy_epoch
      where organization_id = ${organizationId} and ${isOfHistory}
      order by epoch desc limit 1000
    ), process as (
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
    select count(*)::integer as "processes", process.is_live as "isLive",
      process.is_failed as "isFailed",
      process.epoch is not distinct from (select max(epoch) from step) as "isApplied",
      (select step.version from step where step.epoch = process.epoch) as "version"
    from process
    group by process.is_live, process.is_failed, process.epoch`.execute(db)
  return rows
}
