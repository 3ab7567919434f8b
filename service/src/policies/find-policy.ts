import { notFound } from '#platform/api-error.ts'
import type { Db, Tx } from '#platform/database.ts'

import { findPolicy, lockPolicy } from './policy-store.ts'
import type { Policy, Version } from './policy.ts'
import { revisionConflict } from './refusals.ts'
import { findVersion } from './versions/version-store.ts'

type Wanted = { organizationId: string; id: string; revision: number }

/** A policy of the organization, else 404. */
export async function requirePolicy(db: Db, organizationId: string, id: string): Promise<Policy> {
  const policy = await findPolicy(db, organizationId, id)
  if (!policy) throw notFound('policy')
  return policy
}

/** Locks a policy that exists (else 404) and is still at the revision that its editor has read (else 409). */
export async function lockPolicyAt(
  tx: Tx,
  { organizationId, id, revision }: Wanted,
  param: 'body.revision' | 'query.revision' = 'body.revision',
): Promise<Policy> {
  const policy = await lockPolicy(tx, organizationId, id)
  if (!policy) throw notFound('policy')
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
