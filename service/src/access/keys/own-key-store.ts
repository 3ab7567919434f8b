import { sql } from 'kysely'

import type { Tx } from '#platform/database.ts'

import type { KeyRow } from './key-store.ts'

// The keys that members have made for themselves.

type Owner = { organizationId: string; memberId: string; projectId?: string }

/** How many active keys a member has, counted up to a number. */
export async function countOwnKeys(tx: Tx, { organizationId, memberId }: Owner, max: number) {
  const rows = await tx
    .selectFrom('api_key')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('member_id', '=', memberId)
    .where('revoked_at', 'is', null)
    .limit(max)
    .execute()
  return rows.length
}

/** Revokes the active keys of a member, in one project or in all. */
export async function revokeOwnKeys(
  tx: Tx,
  { organizationId, memberId, projectId }: Owner,
  now: Date,
): Promise<KeyRow[]> {
  return tx
    .updateTable('api_key')
    .set({ revoked_at: now })
    .where('organization_id', '=', organizationId)
    .where('member_id', '=', memberId)
    .where(projectId === undefined ? sql<boolean>`true` : sql<boolean>`project_id = ${projectId}`)
    .where('revoked_at', 'is', null)
    .returningAll()
    .execute()
}
