import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'
import type { PolicyKey } from '#policies/policy.ts'

import type { DecisionKey } from './decision-cursor.ts'

export type DecisionPage = {
  by: 'hour' | 'day'
  /** The first and the last day. */
  from: string
  to: string
  projectId: string | undefined
  after: DecisionKey | undefined
  limit: number
  order: 'asc' | 'desc'
}

export type DecisionSum = {
  /** In Unix seconds. */
  start: number
  version: number
  /** Empty for calls without a project. */
  project_id: string
  direction: DecisionKey[4]
  decision: DecisionKey[5]
  mode: DecisionKey[6]
  count: string
}

const columns = sql`start, version, project_id, direction, decision, mode`

/** Returns one row more than `limit` if there are more. */
export async function sumDecisions(
  db: Db,
  { organizationId, policyId }: PolicyKey,
  { by, from, to, projectId, after, limit, order }: DecisionPage,
): Promise<DecisionSum[]> {
  const side = order === 'asc' ? sql`asc` : sql`desc`
  const { rows } = await sql<DecisionSum>`
    select extract(epoch from start)::float8 as start, version, project_id, direction, decision, mode,
      sum(count)::text as count
    from (
      select date_trunc(${by}, hour, 'UTC') as start, version, project_id, direction, decision, mode, count
      from policy_decision_hour
      where organization_id = ${organizationId} and policy_id = ${policyId}
        and hour >= ${from}::date::timestamp at time zone 'UTC'
        and hour < (${to}::date + 1)::timestamp at time zone 'UTC'
        and ${projectId === undefined ? sql`true` : sql`project_id = ${projectId}`}
    ) as counted
    where ${after ? isAfter(after, order) : sql`true`}
    group by ${columns}
    order by counted.start ${side}, version ${side}, project_id ${side}, direction ${side},
      decision ${side}, mode ${side}
    limit ${limit + 1}`.execute(db)
  return rows
}

function isAfter(after: DecisionKey, order: 'asc' | 'desc') {
  const [, start, version, projectId, direction, decision, mode] = after
  const side = order === 'asc' ? sql`>` : sql`<`
  return sql`(${columns}) ${side} (to_timestamp(${start}), ${version}, ${projectId}::text collate "C",
    ${direction}::policy_direction, ${decision}::policy_decision, ${mode}::policy_mode)`
}

export async function sweepDecisions(tx: Tx, before: Date, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from policy_decision_hour where ctid = any (array(
      select ctid from policy_decision_hour where hour < ${before} limit ${limit} for update skip locked))`.execute(
    tx,
  )
  return Number(numAffectedRows ?? 0)
}
