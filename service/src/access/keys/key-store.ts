import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'
import type { Permission } from '@gatehouse/contract/permission'
import { type Selectable, sql } from 'kysely'

import { toBudgetColumn } from '#access/limit-overrides/own-budget.ts'
import type { ApiKey } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'
import { isAfter, type Page, type Position } from '#platform/keyset.ts'

export type KeyRow = Selectable<ApiKey>

/**
 * Administrator keys belong to the organization (`projectId` null), the others to one project. With a `memberId` only
 * those that the member has made for themself.
 */
export type KeyScope = { organizationId: string; projectId: string | null; memberId?: string }

export type NewKey = {
  id: string
  name: string
  permissions: readonly Permission[]
  hash: Buffer
  hashVersion: number
  hint8: string
  last4: string
  managedBy: string | null
  createdAt: Date
  expiresAt: Date | null
  allowedModels: string[] | null
  /** Whom the key belongs to; null: the organization. */
  memberId: string | null
  monthlyBudget: MonthlyBudget | null
}

export async function insertKey(tx: Tx, scope: KeyScope, key: NewKey): Promise<KeyRow> {
  return tx
    .insertInto('api_key')
    .values({
      organization_id: scope.organizationId,
      project_id: scope.projectId,
      kind: scope.projectId === null ? 'admin' : 'project',
      id: key.id,
      name: key.name,
      permissions: [...key.permissions],
      key_hash: key.hash,
      hash_version: key.hashVersion,
      hint8: key.hint8,
      last4: key.last4,
      managed_by: key.managedBy,
      created_at: key.createdAt,
      expires_at: key.expiresAt,
      allowed_models: key.allowedModels,
      member_id: key.memberId,
      monthly_budget: toBudgetColumn(key.monthlyBudget),
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Narrows a query to the keys of one scope. Written exactly as the partial indexes are. */
function isInScope(scope: KeyScope) {
  if (scope.projectId === null) return sql<boolean>`kind = 'admin'`
  const isInProject = sql<boolean>`kind = 'project' and project_id = ${scope.projectId}`
  return scope.memberId === undefined
    ? isInProject
    : sql<boolean>`${isInProject} and member_id = ${scope.memberId}`
}

export async function listKeys(db: Db, scope: KeyScope, page: Page): Promise<KeyRow[]> {
  return db
    .selectFrom('api_key')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where(isInScope(scope))
    .where('revoked_at', 'is', null)
    .where(isAfter(page))
    .orderBy('created_at', page.order)
    .orderBy('id', page.order)
    .limit(page.limit + 1)
    .execute()
}

/** The position of a key in its list. A revoked key keeps its position, so its id stays a valid cursor. */
export async function findKeyPosition(
  db: Db,
  scope: KeyScope,
  id: string,
): Promise<Position | undefined> {
  return db
    .selectFrom('api_key')
    .select(['id', 'created_at'])
    .where('organization_id', '=', scope.organizationId)
    .where(isInScope(scope))
    .where('id', '=', id)
    .executeTakeFirst()
}

export async function countKeys(tx: Tx, scope: KeyScope): Promise<number> {
  const { count } = await tx
    .selectFrom('api_key')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('organization_id', '=', scope.organizationId)
    .where(isInScope(scope))
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Reads an active key and locks its row until the transaction ends. */
export async function lockKey(tx: Tx, scope: KeyScope, id: string): Promise<KeyRow | undefined> {
  return tx
    .selectFrom('api_key')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where(isInScope(scope))
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .forNoKeyUpdate()
    .executeTakeFirst()
}

/** Reads an active key of any project of the organization and locks its row until the transaction ends. */
export async function lockProjectKey(
  tx: Tx,
  organizationId: string,
  id: string,
): Promise<KeyRow | undefined> {
  return tx
    .selectFrom('api_key')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('kind', '=', 'project')
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .forNoKeyUpdate()
    .executeTakeFirst()
}

type EditedKey = Pick<KeyRow, 'id' | 'allowed_models'> & { monthly_budget: MonthlyBudget | null }

/** The caller has locked the key. */
export async function saveKey(tx: Tx, organizationId: string, key: EditedKey) {
  await tx
    .updateTable('api_key')
    .set({
      monthly_budget: toBudgetColumn(key.monthly_budget),
      allowed_models: key.allowed_models,
    })
    .where('organization_id', '=', organizationId)
    .where('id', '=', key.id)
    .execute()
}

/** Revokes an active key; undefined when the scope has no active key with this id. */
export async function revokeKey(tx: Tx, scope: KeyScope, id: string, now: Date) {
  return tx
    .updateTable('api_key')
    .set({ revoked_at: now })
    .where('organization_id', '=', scope.organizationId)
    .where(isInScope(scope))
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
}

/** Whether the organization has a valid key that can create and revoke administrator keys. */
export async function hasKeyManager(tx: Tx, organizationId: string, now: Date): Promise<boolean> {
  const manager: Permission = 'admin_api_keys.write'
  const row = await tx
    .selectFrom('api_key')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('kind', '=', 'admin')
    .where('revoked_at', 'is', null)
    .where(({ eb, or }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .where(sql<boolean>`${manager} = any(permissions)`)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}
