import { sql } from 'kysely'

import type { Tx } from '#platform/database.ts'
import type { PolicyKey } from '#policies/policy.ts'

/** What the patterns in force cost together, in microseconds: those of one policy, and those of all others of its organization. */
export async function sumPatternCosts(
  tx: Tx,
  { organizationId, policyId }: PolicyKey,
): Promise<{ ownUs: number; othersUs: number }> {
  const { rows } = await sql<{ ownUs: number; othersUs: number }>`
    select coalesce(sum(cost) filter (where p.id = ${policyId}), 0)::float8 as "ownUs",
      coalesce(sum(cost) filter (where p.id <> ${policyId}), 0)::float8 as "othersUs"
    from policy p
    join policy_version v on v.organization_id = p.organization_id and v.policy_id = p.id
      and v.version = p.current_version
    cross join unnest(v.pattern_costs) as cost
    where p.organization_id = ${organizationId} and p.deleted_at is null
      and p.state in ('monitoring', 'enforcing')`.execute(tx)
  return rows[0] ?? { ownUs: 0, othersUs: 0 }
}

/** What the patterns of a version cost; none where a release published it that did not measure them. */
export async function findPatternCosts(
  tx: Tx,
  { organizationId, policyId }: PolicyKey,
  version: number,
): Promise<readonly number[]> {
  const row = await tx
    .selectFrom('policy_version')
    .select('pattern_costs')
    .where('organization_id', '=', organizationId)
    .where('policy_id', '=', policyId)
    .where('version', '=', version)
    .executeTakeFirst()
  return row?.pattern_costs ?? []
}
