import type { Attempt, Lease, Scope } from './limits.ts'

// How the counters, here and in Redis, call what they count. Ids contain no '|'.

/** The counters of one scope. */
export function fieldOf(scope: Scope, { projectId, keyId }: Pick<Attempt, 'projectId' | 'keyId'>) {
  return { organization: 'o', project: `p${projectId}`, key: `k${keyId}` }[scope]
}

/** A slot, and whose it is: it ends with '|', so that no name is the beginning of another. */
export const leaseName = ({ leaseId, projectId, keyId }: Omit<Lease, 'organizationId'>) =>
  `${leaseId}|p${projectId}|k${keyId}|`
