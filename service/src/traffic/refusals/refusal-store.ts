import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'

import type { RefusalCount } from './refusal-counts.ts'

/** Adds a batch to the sums of its hours. A batch that was written before changes nothing. */
export async function addUnrecorded(tx: Tx, id: string, counts: readonly RefusalCount[]) {
  const { rows } = await sql`
    insert into refusal_batch (id) values (${id}::uuid) on conflict do nothing returning id`.execute(
    tx,
  )
  if (rows.length === 0) return
  const given = JSON.stringify(
    counts.map((each) => ({
      organization_id: each.organizationId,
      project_id: each.projectId,
      key_id: each.keyId,
      scope: each.scope,
      metric: each.metric,
      count: each.count,
      last_at: each.lastAt,
    })),
  )
  // In the order of the key: two processes that write the same rows never deadlock.
  await sql`
    insert into refusal_hour as sums (organization_id, hour, project_id, key_id, scope, metric, count, last_at)
    select organization_id, date_trunc('hour', last_at, 'UTC'), project_id, key_id, scope, metric, count, last_at
    from jsonb_to_recordset(${given}::jsonb) as given (organization_id text, project_id text, key_id text, scope text,
      metric text, count bigint, last_at timestamptz)
    order by 1, 2, 3, 4, 5, 6
    on conflict (organization_id, hour, project_id, key_id, scope, metric) do update set
      count = sums.count + excluded.count, last_at = greatest(sums.last_at, excluded.last_at)`.execute(
    tx,
  )
}

export type RefusalSum = {
  projectId: string
  keyId: string
  scope: string
  metric: string
  count: number
  lastAt: Date
}

export type RefusalQuery = {
  from: Date
  to: Date
  projectId: string | undefined
  keyId: string | undefined
  limit: number
}

/** Who was refused most, and why; and the count of all of them. */
export async function sumRefusals(
  db: Db,
  organizationId: string,
  { from, to, projectId, keyId, limit }: RefusalQuery,
): Promise<{ sums: RefusalSum[]; total: number }> {
  const { rows } = await sql<RefusalSum & { total: number }>`
    select project_id as "projectId", key_id as "keyId", scope, metric, sum(count)::float8 as count, max(last_at) as "lastAt",
      (sum(sum(count)) over ())::float8 as total
    from refusal_hour
    where organization_id = ${organizationId} and hour >= ${from} and hour < ${to}
      and ${projectId === undefined ? sql`true` : sql`project_id = ${projectId}`}
      and ${keyId === undefined ? sql`true` : sql`key_id = ${keyId}`}
    group by project_id, key_id, scope, metric
    order by sum(count) desc, project_id, key_id, scope, metric limit ${limit}`.execute(db)
  return { sums: rows, total: rows[0]?.total ?? 0 }
}

/** Removes sums of hours before this moment; returns how many. */
export async function sweepRefusalSums(tx: Tx, before: Date, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from refusal_hour where ctid = any (array(
      select ctid from refusal_hour where hour < ${before} limit ${limit} for update skip locked))`.execute(
    tx,
  )
  return Number(numAffectedRows ?? 0)
}

/** Removes what is known of batches that no process repeats any more; returns how many. */
export async function sweepRefusalBatches(tx: Tx, before: Date, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from refusal_batch where ctid = any (array(
      select ctid from refusal_batch where at < ${before} limit ${limit} for update skip locked))`.execute(
    tx,
  )
  return Number(numAffectedRows ?? 0)
}
