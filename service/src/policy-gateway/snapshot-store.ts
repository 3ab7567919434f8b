import type { PolicyContent } from '@gatehouse/contract/policy'
import { sql } from 'kysely'

import type { Db } from '#platform/database.ts'

/** The versions in force in an organization, without their content. */
export type Published = { organizationId: string; epoch: number; policies: PolicyRef[] }
export type PolicyRef = { policyId: string; version: number; sha256: string }

export type VersionContent = PolicyContent & PolicyRef

const organizationsPerPage = 100

/** What is in force in the given organizations, read in one statement and therefore consistent. */
export async function readPublished(
  db: Db,
  organizationIds: readonly string[],
): Promise<Published[]> {
  const { rows } = await sql<Published>`
    select organization.id as "organizationId", organization.policy_epoch::float8 as "epoch",
      coalesce(
        json_agg(json_build_object(
          'policyId', policy.id,
          'version', policy.current_version,
          'sha256', encode(policy.published_sha256, 'hex')
        ) order by policy.id) filter (where policy.id is not null),
        '[]'
      ) as "policies"
    from organization left join policy on policy.organization_id = organization.id
      and policy.deleted_at is null and policy.state in ('monitoring', 'enforcing')
    where organization.id = any(${organizationIds}::text[])
    group by organization.id`.execute(db)
  return rows
}

/** Every organization that has ever published a policy, in pages. */
export async function* readOrganizationIds(db: Db): AsyncGenerator<string[]> {
  for (let after = ''; ;) {
    const rows = await db
      .selectFrom('organization')
      .select('id')
      .where('id', '>', after)
      .where('policy_epoch', '>', '0')
      .orderBy('id')
      .limit(organizationsPerPage)
      .execute()
    if (rows.length > 0) yield rows.map(({ id }) => id)
    const last = rows.at(-1)
    if (!last || rows.length < organizationsPerPage) return
    after = last.id
  }
}

/** The content of versions. Versions are immutable, so it does not matter when they are read. */
export async function readContents(
  db: Db,
  organizationId: string,
  wanted: readonly PolicyRef[],
): Promise<VersionContent[]> {
  const [ids, versions] = [
    wanted.map(({ policyId }) => policyId),
    wanted.map(({ version }) => version),
  ]
  const { rows } = await sql<VersionContent>`
    select v.policy_id as "policyId", v.version, encode(v.sha256, 'hex') as "sha256", v.rule,
      v.direction, v.mode, v.scope, v.project_ids, v.match_threshold_basis_points
    from unnest(${ids}::text[], ${versions}::integer[]) as wanted (policy_id, version)
    join policy_version v on v.organization_id = ${organizationId}
      and v.policy_id = wanted.policy_id and v.version = wanted.version`.execute(db)
  return rows
}
