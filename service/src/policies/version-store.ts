import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'
import type { Page } from '#platform/keyset.ts'

import type { Version } from './policy.ts'

const versionsKept = 200 // G8.18; the database refuses to prune more

const columns = [
  ...(['id', 'version', 'rule', 'direction', 'mode', 'scope', 'project_ids'] as const),
  ...(['match_threshold_basis_points', 'sha256', 'published_at'] as const),
] as const

type Place = { organizationId: string; policyId: string }

export async function insertVersion(tx: Tx, place: Place, version: Version) {
  await tx
    .insertInto('policy_version')
    .values({ ...version, organization_id: place.organizationId, policy_id: place.policyId })
    .execute()
}

/** Removes what is older than the last 200. One goes for each that comes. */
export async function pruneVersions(tx: Tx, place: Place, newest: number) {
  if (newest <= versionsKept) return
  await tx
    .deleteFrom('policy_version')
    .where('organization_id', '=', place.organizationId)
    .where('policy_id', '=', place.policyId)
    .where('version', '<=', newest - versionsKept)
    .execute()
}

const selectVersions = (db: Db | Tx, { organizationId, policyId }: Place) =>
  db
    .selectFrom('policy_version')
    .select(columns)
    .where('organization_id', '=', organizationId)
    .where('policy_id', '=', policyId)

export async function findVersion(
  db: Db | Tx,
  place: Place,
  version: number,
): Promise<Version | undefined> {
  return selectVersions(db, place).where('version', '=', version).executeTakeFirst()
}

/** The number of a version by its id, for a list that goes on behind it. */
export async function findVersionNumber(
  db: Db,
  { organizationId, policyId }: Place,
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

/** By number: two versions can be published in one millisecond. */
export async function listVersions(
  db: Db,
  place: Place,
  { after, limit, order }: Omit<Page, 'after'> & { after: number | undefined },
): Promise<Version[]> {
  const side = order === 'asc' ? sql`>` : sql`<`
  return selectVersions(db, place)
    .where(after === undefined ? sql<boolean>`true` : sql<boolean>`version ${side} ${after}`)
    .orderBy('version', order)
    .limit(limit + 1)
    .execute()
}
