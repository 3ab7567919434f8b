import type { LimitOverrides, LimitScope } from '@gatehouse/contract/limits'
import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'
import { type RawBuilder, sql } from 'kysely'

import type { Db } from '#platform/database.ts'

// The queries of authentication. Unlike all others they start from a credential: the organization is
// their result, not their parameter.

/** The limits that were set for the scopes of a credential, by scope; null when there are none. */
const selectOverrides = (scopes: readonly (readonly [LimitScope, RawBuilder<unknown>])[]) =>
  sql<LimitOverrides | null>`(
    select jsonb_object_agg(own.scope, own.values) from limit_override own
    where own.organization_id = organization.id
      and (own.scope, own.scope_id) in (${sql.join(
        scopes.map(([scope, id]) => sql`(${sql.lit(scope)}::limit_scope, ${id})`),
      )})
  )`

/** A key with the status of its organization and project; revoked and expired keys included. */
export async function findKeyByHash(db: Db, hashes: readonly Buffer[]) {
  return db
    .selectFrom('api_key as key')
    .innerJoin('organization', 'organization.id', 'key.organization_id')
    .leftJoin('project', (join) =>
      join
        .onRef('project.organization_id', '=', 'key.organization_id')
        .onRef('project.id', '=', 'key.project_id'),
    )
    .select([
      'key.id',
      'key.organization_id',
      'key.project_id',
      'key.kind',
      'key.key_hash',
      'key.hash_version',
      'key.permissions',
      'key.expires_at',
      'key.revoked_at',
      'organization.status as organization_status',
      'organization.plan',
      'organization.paid_micro_usd',
      'project.status as project_status',
      selectOverrides([
        ['organization', sql.ref('key.organization_id')],
        ['project', sql.ref('key.project_id')],
        ['key', sql.ref('key.id')],
      ]).as('limit_overrides'),
      sql<MonthlyBudget | null>`key.monthly_budget`.as('monthly_budget'),
      sql<MonthlyBudget | null>`project.monthly_budget`.as('project_budget'),
    ])
    .where('key.key_hash', 'in', hashes)
    .executeTakeFirst()
}
export type FoundKey = NonNullable<Awaited<ReturnType<typeof findKeyByHash>>>

/**
 * The organization and project of a token, the default project when the token names none. `project_id` is
 * null when the organization has no such project.
 */
export async function findTenancy(db: Db, organizationId: string, projectId: string | null) {
  return db
    .selectFrom('organization')
    .leftJoin('project', (join) =>
      join
        .onRef('project.organization_id', '=', 'organization.id')
        .on(
          projectId === null
            ? sql<boolean>`project.is_default`
            : sql<boolean>`project.id = ${projectId}`,
        ),
    )
    .select([
      'organization.id as organization_id',
      'organization.status as organization_status',
      'organization.plan',
      'organization.paid_micro_usd',
      'project.id as project_id',
      'project.status as project_status',
      selectOverrides([
        ['organization', sql.ref('organization.id')],
        ['project', sql.ref('project.id')],
      ]).as('limit_overrides'),
      sql<MonthlyBudget | null>`project.monthly_budget`.as('project_budget'),
    ])
    .where('organization.id', '=', organizationId)
    .executeTakeFirst()
}
export type Tenancy = NonNullable<Awaited<ReturnType<typeof findTenancy>>>

export type KeyUse = { organizationId: string; keyId: string; usedAt: Date }

/**
 * Writes when keys were last used, many in one statement; an older time never replaces a newer one. Rows
 * are locked in a fixed order, because two processes that write the same keys would deadlock otherwise.
 */
export async function writeKeyUses(db: Db, uses: readonly KeyUse[]) {
  await sql`
    with used (organization_id, id, at) as (
      select * from unnest(
        ${uses.map((use) => use.organizationId)}::text[],
        ${uses.map((use) => use.keyId)}::text[],
        ${uses.map((use) => use.usedAt)}::timestamptz[]
      )
    ), locked as materialized (
      select api_key.organization_id, api_key.id, used.at
      from api_key join used using (organization_id, id)
      order by api_key.organization_id, api_key.id
      for no key update of api_key
    )
    update api_key set last_used_at = greatest(api_key.last_used_at, locked.at)
    from locked
    where api_key.organization_id = locked.organization_id and api_key.id = locked.id`.execute(db)
}

/** Moves a key to the current pepper, unless another process has done it since the key was read. */
export async function rehashKey(
  db: Db,
  found: FoundKey,
  { hash, version }: { hash: Buffer; version: number },
) {
  await db
    .updateTable('api_key')
    .set({ key_hash: hash, hash_version: version })
    .where('organization_id', '=', found.organization_id)
    .where('id', '=', found.id)
    .where('hash_version', '=', found.hash_version)
    .execute()
}
