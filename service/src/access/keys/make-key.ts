import { randomBytes } from 'node:crypto'

import type { Permission } from '@gatehouse/contract/permission'

import { formatKey, type HashKey, partsToKeep } from '#access/secret.ts'
import { permissionDenied } from '#access/unauthorized.ts'
import type { Principal } from '#http/principal.ts'
import type { Tx } from '#platform/database.ts'
import { createId } from '#platform/id.ts'

import { insertKey, type KeyPlace, type KeyRow } from './key-store.ts'

export type KeyWish = {
  name: string
  permissions: readonly Permission[]
  expires_in_seconds?: number | null | undefined
}

/** Makes a key and keeps its hash; `value` is the only copy of the secret there will ever be. */
export async function makeKey(
  tx: Tx,
  place: KeyPlace,
  wish: KeyWish,
  { hashKey, now }: { hashKey: HashKey; now: Date },
): Promise<{ row: KeyRow; value: string }> {
  const value = formatKey(place.projectId === null ? 'gate_adm_' : 'gate_prj_', randomBytes(32))
  const [{ hash, version }] = hashKey(value)
  const lifetimeSeconds = wish.expires_in_seconds
  const row = await insertKey(tx, place, {
    id: createId('key', now),
    name: wish.name,
    permissions: [...new Set(wish.permissions)],
    hash,
    hashVersion: version,
    ...partsToKeep(value),
    createdAt: now,
    expiresAt: lifetimeSeconds ? new Date(now.getTime() + lifetimeSeconds * 1000) : null,
  })
  return { row, value }
}

/** A key never grants more than its creator has; `always` is what the creator's role includes. */
export function refuseWiderGrant(
  { permissions }: Principal,
  granted: readonly Permission[],
  always: readonly Permission[] = [],
) {
  const beyond = granted.find((each) => !permissions.has(each) && !always.includes(each))
  if (beyond) {
    throw permissionDenied(beyond, `You cannot grant ${beyond}, because your own key lacks it.`)
  }
}
