import { requireWritable, type WritingCaller } from '#access/managed/require-writable.ts'
import type { Announce } from '#audit/announce.ts'
import { notFound } from '#platform/api-error.ts'
import type { Db, Tx } from '#platform/database.ts'

import { findPolicy, lockPolicy } from './policy-store.ts'
import type { Policy, Version } from './policy.ts'
import { presentPolicy } from './present-policy.ts'
import { revisionConflict } from './refusals.ts'
import { factsOf } from './save-change.ts'
import { findVersion } from './versions/version-store.ts'

type Wanted = { id: string; revision: number; param?: 'body.revision' | 'query.revision' }

/** A policy of the organization, else 404. */
export async function requirePolicy(db: Db, organizationId: string, id: string): Promise<Policy> {
  const policy = await findPolicy(db, organizationId, id)
  if (!policy) throw notFound('policy')
  return policy
}

/**
 * Locks a policy that exists (else 404), that the request may change for its set and that is still at the revision that its editor
 * has read (else 409).
 */
export async function lockPolicyAt(
  tx: Tx,
  deps: { announce: Announce },
  caller: WritingCaller,
  { id, revision, param = 'body.revision' }: Wanted,
): Promise<Policy> {
  const { organizationId } = caller.principal
  const locked = await lockPolicy(tx, organizationId, id)
  if (!locked) throw notFound('policy')
  const managed_by = await requireWritable(tx, deps, caller, {
    table: 'policy',
    id,
    managedBy: locked.managed_by,
    present: async (set) => {
      const current = await findCurrent(tx, organizationId, locked)
      return presentPolicy({ ...locked, managed_by: set }, current)
    },
    facts: factsOf(locked),
  })
  const policy = { ...locked, managed_by }
  if (policy.revision !== revision) throw revisionConflict(policy.revision, param)
  return policy
}

/** The current version of a policy; undefined before its first publication. */
export async function findCurrent(
  db: Db | Tx,
  organizationId: string,
  policy: Policy,
): Promise<Version | undefined> {
  if (policy.current_version === null) return undefined
  return findVersion(db, { organizationId, policyId: policy.id }, policy.current_version)
}
