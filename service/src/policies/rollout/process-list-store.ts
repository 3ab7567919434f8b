import { sql } from 'kysely'

import { liveSeconds } from '#audit/process-store.ts'
import type { Db } from '#platform/database.ts'

import { silentSeconds } from './rollout-store.ts'

export type ListedProcess = {
  id: string
  release: string | null
  startedAt: Date
  seenAt: Date
  isLive: boolean
  isReady: boolean | null
  countsLocally: boolean | null
  isFailed: boolean
  epoch: number
  total: number
}

/** The processes as one organization may see them: nothing of other organizations, of hosts or of addresses. */
export async function listProcesses(
  db: Db,
  organizationId: string,
  limit: number,
): Promise<ListedProcess[]> {
  const { rows } = await sql<ListedProcess>`
    with step as (
      select epoch, xid, at from policy_epoch where organization_id = ${organizationId} order by epoch desc limit 1000
    )
    select left(process.id::text, 8) as id, release, started_at as "startedAt", seen_at as "seenAt",
      seen_at > now() - make_interval(secs => ${liveSeconds}) as "isLive", is_ready as "isReady",
      counts_locally as "countsLocally", failures ? ${organizationId} as "isFailed",
      coalesce((
        select max(step.epoch) from step
        where (step.at < now() - interval '1 hour' or pg_visible_in_snapshot(step.xid, process.applied))
          and step.epoch <= coalesce((process.failures ->> ${organizationId})::bigint, step.epoch)
      ), 0)::float8 as epoch, (count(*) over ())::integer as total
    from api_process as process
    where seen_at > now() - make_interval(secs => ${silentSeconds})
    order by started_at desc, process.id limit ${limit}`.execute(db)
  return rows
}
