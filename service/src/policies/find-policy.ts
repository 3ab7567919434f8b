import { notFound } from '#platform/api-error.ts'
import type { Db, Tx } from '#platform/database.ts'

import { findPolicy, lockPolicy } from './policy-store.ts'
import type { Policy, Version } from './policy.ts'
import { revisionConflict } from './refusals.ts'
import { findVersion } from './version-store.ts'

type Wanted = { organizationId: string; id: string; revision: number }

/** A policy of the organization (404). */
export async function requirePolicy(db: Db, organizationId: string, id: string): Promise<Policy> {
  const policy = await findPolicy(db, organizationId, id)
  if (!policy) throw notFound('policy')
  return policy
}

/** A policy at the revision its editor has read: it exists (404), nobody has changed it (409). */
export async function holdPolicy(
  tx: Tx,
  { organizationId, id, revision }: Wanted,
  param: 'body.revision' | 'query.revision' = 'body.revision',
): Promise<Policy> {
  const policy = await lockPolicy(tx, organizationId, id)
  if (!policy) throw notFound('policy')
  if (policy.revision !== revision) throw revisionConflict(policy.revision, param)
  return policy
}

/** The version a policy has published, if any. */
export async function findCurrent(
  db: Db | Tx,
  organizationId: string,
  policy: Policy,
): Promise<Version | undefined> {
  if (policy.current_version === null) return undefined
  return findVersion(db, { organizationId, policyId: policy.id }, policy.current_version)
}
