import { randomBytes } from 'node:crypto'

import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'
import { defaultProjectKeyPermissions, type Permission } from '@gatehouse/contract/permission'
import type { KeyDefaults } from '@gatehouse/contract/project'

import { formatKey, type HashKey, partsToKeep } from '#access/secret.ts'
import { permissionDenied } from '#access/unauthorized.ts'
import type { Principal } from '#http/principal.ts'
import type { Tx } from '#platform/database.ts'
import { createId } from '#platform/id.ts'

import { insertKey, type KeyScope, type KeyRow } from './key-store.ts'
import { decideBudget, decideLifetime } from './key-terms.ts'

export type KeyCreation = {
  name: string
  permissions: readonly Permission[]
  expires_in_seconds?: number | null | undefined
  allowedModels?: string[] | null
  monthly_budget?: MonthlyBudget | null | undefined
}

/** The member who makes a key for themself, and what the project prescribes for such keys. */
export type KeyOwner = { memberId: string; defaults: KeyDefaults | null }

type Making = {
  hashKey: HashKey
  now: Date
  owner?: KeyOwner | null
  /** How long a key works of which nothing else is said. */
  usualSeconds?: number | null
  /** The set that manages the key; null: none does. */
  managedBy?: string | null
}

/** Creates a key and stores its hash. `value` is the secret: it is stored nowhere. */
export async function makeKey(
  tx: Tx,
  scope: KeyScope,
  creation: KeyCreation,
  { hashKey, now, owner, usualSeconds = null, managedBy = null }: Making,
): Promise<{ row: KeyRow; value: string }> {
  const value = formatKey(scope.projectId === null ? 'gate_adm_' : 'gate_prj_', randomBytes(32))
  const [{ hash, version }] = hashKey(value)
  const lifetimeSeconds = decideLifetime(creation.expires_in_seconds, {
    prescribedSeconds: owner?.defaults?.expires_in_seconds ?? null,
    usualSeconds,
  })
  const row = await insertKey(tx, scope, {
    id: createId('key', now),
    name: creation.name,
    permissions: [...new Set(creation.permissions)],
    hash,
    hashVersion: version,
    ...partsToKeep(value),
    managedBy,
    createdAt: now,
    expiresAt: lifetimeSeconds ? new Date(now.getTime() + lifetimeSeconds * 1000) : null,
    allowedModels: creation.allowedModels ?? null,
    memberId: owner?.memberId ?? null,
    monthlyBudget: decideBudget(creation.monthly_budget, owner?.defaults?.monthly_budget ?? null),
  })
  return { row, value }
}

/** Refuses permissions that the creator lacks; those in `always` may be granted without having them. */
export function refuseWiderGrant(
  { permissions, member }: Pick<Principal, 'permissions' | 'member'>,
  granted: readonly Permission[],
  always: readonly Permission[] = [],
) {
  const lacking = granted.find((each) => !permissions.has(each) && !always.includes(each))
  if (lacking) {
    throw permissionDenied(
      lacking,
      `You cannot grant the permission ${lacking}, because ${member ? 'you lack it' : 'your own key lacks it'}.`,
    )
  }
}

/** The keys that people make for themselves have at most the default permissions, whatever their makers may do. */
export function refuseMoreThanDefault(granted: readonly Permission[]) {
  const defaults: readonly Permission[] = defaultProjectKeyPermissions
  const further = granted.find((each) => !defaults.includes(each))
  if (further) {
    throw permissionDenied(
      further,
      `A key of a person cannot have the permission ${further}; leave it out.`,
    )
  }
}
