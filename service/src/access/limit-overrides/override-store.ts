import type { LimitScope, LimitValues } from '@gatehouse/contract/limits'
import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'

/** One organization, project or key; the id of an organization's scope is its own. */
export type OverrideScope = { organizationId: string; scope: LimitScope; scopeId: string }

export async function findOverride(
  db: Db | Tx,
  { organizationId, scope, scopeId }: OverrideScope,
): Promise<LimitValues> {
  const row = await db
    .selectFrom('limit_override')
    .select('values')
    .where('organization_id', '=', organizationId)
    .where('scope', '=', scope)
    .where('scope_id', '=', scopeId)
    .executeTakeFirst()
  return (row?.values ?? {}) as LimitValues
}

/** The limits that were set for those of the ids that have any. */
export async function findOverrides(
  db: Db,
  organizationId: string,
  scope: LimitScope,
  ids: readonly string[],
): Promise<Map<string, LimitValues>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('limit_override')
    .select(['scope_id', 'values'])
    .where('organization_id', '=', organizationId)
    .where('scope', '=', scope)
    .where('scope_id', '=', sql<string>`any(${ids}::text[])`)
    .execute()
  return new Map(rows.map(({ scope_id, values }) => [scope_id, values as LimitValues]))
}

/** The organization's first, then at most `limit` of its projects and keys. */
export async function listOverrides(db: Db, organizationId: string, limit: number) {
  const rows = await db
    .selectFrom('limit_override')
    .select(['scope', 'scope_id', 'values'])
    .where('organization_id', '=', organizationId)
    .orderBy('scope')
    .orderBy('scope_id')
    .limit(limit)
    .execute()
  return rows.map(({ scope, scope_id, values }) => ({
    scope,
    scopeId: scope_id,
    values: values as LimitValues,
  }))
}

/** Replaces what was set for a scope; without any number its row is removed. */
export async function saveOverride(
  tx: Tx,
  { organizationId, scope, scopeId }: OverrideScope,
  values: LimitValues,
) {
  if (Object.keys(values).length === 0) {
    await tx
      .deleteFrom('limit_override')
      .where('organization_id', '=', organizationId)
      .where('scope', '=', scope)
      .where('scope_id', '=', scopeId)
      .execute()
    return
  }
  const json = JSON.stringify(values)
  await tx
    .insertInto('limit_override')
    .values({ organization_id: organizationId, scope, scope_id: scopeId, values: json })
    .onConflict((conflict) =>
      conflict.columns(['organization_id', 'scope', 'scope_id']).doUpdateSet({ values: json }),
    )
    .execute()
}
