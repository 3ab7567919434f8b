import { randomBytes } from 'node:crypto'

import type { Permission } from '@gatehouse/contract/permission'

import { formatKey, type HashKey, partsToKeep } from '#access/secret.ts'
import { permissionDenied } from '#access/unauthorized.ts'
import type { Principal } from '#http/principal.ts'
import type { Tx } from '#platform/database.ts'
import { createId } from '#platform/id.ts'

import { insertKey, type KeyScope, type KeyRow } from './key-store.ts'

export type KeyCreation = {
  name: string
  permissions: readonly Permission[]
  expires_in_seconds?: number | null | undefined
}

/** Creates a key and stores its hash. `value` is the secret: it is stored nowhere. */
export async function makeKey(
  tx: Tx,
  scope: KeyScope,
  creation: KeyCreation,
  { hashKey, now }: { hashKey: HashKey; now: Date },
): Promise<{ row: KeyRow; value: string }> {
  const value = formatKey(scope.projectId === null ? 'gate_adm_' : 'gate_prj_', randomBytes(32))
  const [{ hash, version }] = hashKey(value)
  const lifetimeSeconds = creation.expires_in_seconds
  const row = await insertKey(tx, scope, {
    id: createId('key', now),
    name: creation.name,
    permissions: [...new Set(creation.permissions)],
    hash,
    hashVersion: version,
    ...partsToKeep(value),
    createdAt: now,
    expiresAt: lifetimeSeconds ? new Date(now.getTime() + lifetimeSeconds * 1000) : null,
  })
  return { row, value }
}

/** Refuses permissions that the creator lacks; those in `always` may be granted without having them. */
export function refuseWiderGrant(
  { permissions }: Principal,
  granted: readonly Permission[],
  always: readonly Permission[] = [],
) {
  const lacking = granted.find((each) => !permissions.has(each) && !always.includes(each))
  if (lacking) {
    throw permissionDenied(
      lacking,
      `You cannot grant the permission ${lacking}, because your own key lacks it.`,
    )
  }
}
