import { layoutNumber } from '#limits/limit-metrics.ts'
import type { Lease, Scope, ScopeIds } from '#limits/limits.ts'

// The names under which Redis holds counters and leases, which the counters in memory use too. Ids contain no '|'.

/** Counters of another byte layout have another key; the key of the first has no number. */
const layoutSuffix = layoutNumber === 1 ? '' : layoutNumber

/** The keys of an organization's counters, leases and index of leases. It is their hash tag, so a cluster keeps them together. */
export const organizationKeys = (prefix: string, organizationId: string) =>
  [
    `${prefix}:{${organizationId}}:c${layoutSuffix}`,
    `${prefix}:{${organizationId}}:l`,
    `${prefix}:{${organizationId}}:i`,
  ] as const

/** The keys of the quota counters and reservations of an organization in one period. */
export const quotaKeys = (prefix: string, organizationId: string, period: string) =>
  [`${prefix}:{${organizationId}}:q${period}`, `${prefix}:{${organizationId}}:r${period}`] as const

export const organizationField = 'o'
export const projectField = (projectId: string) => `p${projectId}`
export const keyField = (keyId: string) => `k${keyId}`

/** The field with the counters of one scope of a call. */
export function scopeField(scope: Scope, { projectId, keyId }: Omit<ScopeIds, 'organizationId'>) {
  if (scope === 'organization') return organizationField
  return scope === 'project' ? projectField(projectId) : keyField(keyId)
}

/** The name of a lease, which ends with its scopes. The closing '|' keeps an id from matching a longer one. */
export const leaseName = ({ leaseId, projectId, keyId }: Omit<Lease, 'organizationId'>) =>
  `${leaseId}|${projectField(projectId)}|${keyField(keyId)}|`
