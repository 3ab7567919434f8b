import type { LimitOverrides, LimitScope } from '@gatehouse/contract/limits'
import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'
import { type RawBuilder, sql } from 'kysely'

import type { Db } from '#platform/database.ts'

import type { Labels } from './labels/labels.ts'

// The queries of authentication. Unlike all others they start from a credential: the organization is
// their result, not their parameter.

/** The limits that were set for the scopes of a credential, by scope; null when there are none. */
export const selectOverrides = (scopes: readonly (readonly [LimitScope, RawBuilder<unknown>])[]) =>
  sql<LimitOverrides | null>`(
    select jsonb_object_agg(own.scope, own.values) from limit_override own
    where own.organization_id = organization.id
      and (own.scope, own.scope_id) in (${sql.join(
        scopes.map(([scope, id]) => sql`(${sql.lit(scope)}::limit_scope, ${id})`),
      )})
  )`

/** The models that a key may use: those of its own list and of its project's, each of which may be missing. */
const selectAllowedModels = () =>
  sql<string[] | null>`case
    when key.allowed_models is null then project.allowed_models
    when project.allowed_models is null then key.allowed_models
    else array(
      select unnest(key.allowed_models) intersect select unnest(project.allowed_models) order by 1
    )
  end`

/** Null for a project without labels, as most are. */
const selectLabels = sql<Labels | null>`nullif(project.labels, '{}')`

/**
 * A key with the status of its organization and project, and of the person whom it belongs to; revoked and expired keys
 * included. A person's membership is read here, so that a key ends with it, whatever was written to the key itself.
 */
export async function findKeyByHash(db: Db, hashes: readonly Buffer[]) {
  return db
    .selectFrom('api_key as key')
    .innerJoin('organization', 'organization.id', 'key.organization_id')
    .leftJoin('project', (join) =>
      join
        .onRef('project.organization_id', '=', 'key.organization_id')
        .onRef('project.id', '=', 'key.project_id'),
    )
    .leftJoin('member', (join) =>
      join
        .onRef('member.organization_id', '=', 'key.organization_id')
        .onRef('member.id', '=', 'key.member_id'),
    )
    .leftJoin('project_member', (join) =>
      join
        .onRef('project_member.organization_id', '=', 'key.organization_id')
        .onRef('project_member.project_id', '=', 'key.project_id')
        .onRef('project_member.member_id', '=', 'key.member_id'),
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
      'key.member_id',
      'member.status as member_status',
      'project_member.role as member_project_role',
      'organization.status as organization_status',
      'organization.plan',
      'organization.paid_micro_usd',
      'project.status as project_status',
      'project.name as project_name',
      selectOverrides([
        ['organization', sql.ref('key.organization_id')],
        ['project', sql.ref('key.project_id')],
        ['key', sql.ref('key.id')],
      ]).as('limit_overrides'),
      sql<MonthlyBudget | null>`key.monthly_budget`.as('monthly_budget'),
      sql<MonthlyBudget | null>`project.monthly_budget`.as('project_budget'),
      selectAllowedModels().as('allowed_models'),
      selectLabels.as('project_labels'),
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
      'project.name as project_name',
      selectOverrides([
        ['organization', sql.ref('organization.id')],
        ['project', sql.ref('project.id')],
      ]).as('limit_overrides'),
      sql<MonthlyBudget | null>`project.monthly_budget`.as('project_budget'),
      'project.allowed_models',
      selectLabels.as('project_labels'),
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
