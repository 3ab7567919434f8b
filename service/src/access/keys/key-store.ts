import type { Permission } from '@gatehouse/contract/permission'
import { type Selectable, sql } from 'kysely'

import type { ApiKey } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'
import { isAfter, type Page, type Position } from '#platform/keyset.ts'

export type KeyRow = Selectable<ApiKey>

/** Where keys live: administrator keys in the organization, the others in one project. */
export type KeyPlace = { organizationId: string; projectId: string | null }

export type NewKey = {
  id: string
  name: string
  permissions: readonly Permission[]
  hash: Buffer
  hashVersion: number
  hint8: string
  last4: string
  createdAt: Date
  expiresAt: Date | null
}

export async function insertKey(tx: Tx, place: KeyPlace, key: NewKey): Promise<KeyRow> {
  return tx
    .insertInto('api_key')
    .values({
      organization_id: place.organizationId,
      project_id: place.projectId,
      kind: place.projectId === null ? 'admin' : 'project',
      id: key.id,
      name: key.name,
      permissions: [...key.permissions],
      key_hash: key.hash,
      hash_version: key.hashVersion,
      hint8: key.hint8,
      last4: key.last4,
      created_at: key.createdAt,
      expires_at: key.expiresAt,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Narrows a query to the keys of one place, in the words of the index that serves it. */
function at(place: KeyPlace) {
  return place.projectId === null
    ? sql<boolean>`kind = 'admin'`
    : sql<boolean>`kind = 'project' and project_id = ${place.projectId}`
}

export async function listKeys(db: Db, place: KeyPlace, page: Page): Promise<KeyRow[]> {
  return db
    .selectFrom('api_key')
    .selectAll()
    .where('organization_id', '=', place.organizationId)
    .where(at(place))
    .where('revoked_at', 'is', null)
    .where(isAfter(page))
    .orderBy('created_at', page.order)
    .orderBy('id', page.order)
    .limit(page.limit + 1)
    .execute()
}

/** Where a key stands in its list; a revoked key keeps its place. */
export async function findKeyPosition(
  db: Db,
  place: KeyPlace,
  id: string,
): Promise<Position | undefined> {
  return db
    .selectFrom('api_key')
    .select(['id', 'created_at'])
    .where('organization_id', '=', place.organizationId)
    .where(at(place))
    .where('id', '=', id)
    .executeTakeFirst()
}

export async function countKeys(tx: Tx, place: KeyPlace): Promise<number> {
  const { count } = await tx
    .selectFrom('api_key')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('organization_id', '=', place.organizationId)
    .where(at(place))
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Marks an active key as revoked; undefined when there is none with this id at this place. */
export async function revokeKey(tx: Tx, place: KeyPlace, id: string, now: Date) {
  return tx
    .updateTable('api_key')
    .set({ revoked_at: now })
    .where('organization_id', '=', place.organizationId)
    .where(at(place))
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
}

/** Does the organization still have a working key that can make and revoke administrator keys? */
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
