import type { PolicyContent, PolicyState } from '@gatehouse/contract/policy'
import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'
import type { Page } from '#platform/keyset.ts'
import type { PolicyKey, Version } from '#policies/policy.ts'

const versionsKept = 200 // the database refuses to prune more

const columns = [
  ...(['id', 'version', 'rule', 'direction', 'mode', 'scope', 'project_ids'] as const),
  ...(['match_threshold_basis_points', 'sha256', 'published_at'] as const),
] as const

/** `patternCosts`: in microseconds, in the order of the rule. */
export async function insertVersion(
  tx: Tx,
  { organizationId, policyId }: PolicyKey,
  version: Version,
  patternCosts: number[],
) {
  await tx
    .insertInto('policy_version')
    .values({
      ...version,
      organization_id: organizationId,
      policy_id: policyId,
      pattern_costs: patternCosts,
    })
    .execute()
}

/** Deletes versions older than the last 200: at most one, when it runs after every publication. */
export async function pruneVersions(tx: Tx, key: PolicyKey, newest: number) {
  if (newest <= versionsKept) return
  await tx
    .deleteFrom('policy_version')
    .where('organization_id', '=', key.organizationId)
    .where('policy_id', '=', key.policyId)
    .where('version', '<=', newest - versionsKept)
    .execute()
}

const selectVersions = (db: Db | Tx, { organizationId, policyId }: PolicyKey) =>
  db
    .selectFrom('policy_version')
    .select(columns)
    .$narrowType<{ direction: PolicyContent['direction'] }>() // that of a match may also be another
    .where('organization_id', '=', organizationId)
    .where('policy_id', '=', policyId)

export async function findVersion(
  db: Db | Tx,
  key: PolicyKey,
  version: number,
): Promise<Version | undefined> {
  return selectVersions(db, key).where('version', '=', version).executeTakeFirst()
}

/** The number of a version by its id: the cursor of a list is an id. */
export async function findVersionNumber(
  db: Db,
  { organizationId, policyId }: PolicyKey,
  id: string,
): Promise<number | undefined> {
  const row = await db
    .selectFrom('policy_version')
    .select('version')
    .where('organization_id', '=', organizationId)
    .where('policy_id', '=', policyId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row?.version
}

/** Ordered by number, not by time: two versions can be published within one millisecond. */
export async function listVersions(
  db: Db,
  key: PolicyKey,
  { after, limit, order }: Omit<Page, 'after'> & { after: number | undefined },
): Promise<Version[]> {
  const side = order === 'asc' ? sql`>` : sql`<`
  return selectVersions(db, key)
    .where(after === undefined ? sql<boolean>`true` : sql<boolean>`version ${side} ${after}`)
    .orderBy('version', order)
    .limit(limit + 1)
    .execute()
}

/** The current version of a policy, with what compiling it needs. */
export type CurrentVersion = PolicyContent & {
  organizationId: string
  policyId: string
  name: string
  state: PolicyState
  version: number
  sha256: string
  publishedAt: Date
}

const versionsPerPage = 50

/** The current version of every policy of every organization, in pages. Policies that are only drafts have none. */
export async function* readCurrentVersions(db: Db): AsyncGenerator<CurrentVersion[]> {
  let last: CurrentVersion | undefined
  do {
    const { organizationId, policyId } = last ?? { organizationId: '', policyId: '' }
    const { rows } = await sql<CurrentVersion>`
      select policy.organization_id as "organizationId", policy.id as "policyId", policy.name,
        policy.state, v.version, encode(v.sha256, 'hex') as "sha256", v.rule, v.direction, v.mode,
        v.scope, v.project_ids, v.match_threshold_basis_points, v.published_at as "publishedAt"
      from policy join policy_version v on v.organization_id = policy.organization_id
        and v.policy_id = policy.id and v.version = policy.current_version
      where policy.deleted_at is null
        and (policy.organization_id, policy.id) > (${organizationId}, ${policyId})
      order by policy.organization_id, policy.id limit ${versionsPerPage}`.execute(db)
    if (rows.length > 0) yield rows
    last = rows.length === versionsPerPage ? rows.at(-1) : undefined
  } while (last)
}

/** When a migration was applied; null where it is not. */
export async function findMigrationTime(db: Db, name: string): Promise<Date | null> {
  const { rows } = await sql<{ appliedAt: Date }>`
    select "timestamp"::timestamptz as "appliedAt" from kysely_migration where name = ${name}`.execute(
    db,
  )
  return rows[0]?.appliedAt ?? null
}
