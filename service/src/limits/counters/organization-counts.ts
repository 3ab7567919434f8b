import type { Lease } from '#limits/limits.ts'
import { createQuotaCounts, type QuotaCounts } from '#limits/quotas/quota-counts.ts'

import type { BucketCounters } from './buckets.ts'
import { leaseName } from './counter-names.ts'

/** What is counted for one organization. */
export type OrganizationCounts = {
  /** By the field of the scope. */
  counters: Map<string, BucketCounters>
  /** When each lease expires, by its name. */
  leases: Map<string, number>
  quotas: QuotaCounts
}

export const createOrganizationCounts = (): OrganizationCounts => ({
  counters: new Map(),
  leases: new Map(),
  quotas: createQuotaCounts(),
})

/** A lease among those of its organization. */
export type LeaseOfOrganization = Omit<Lease, 'organizationId'>

export const isHeld = (counts: OrganizationCounts, lease: LeaseOfOrganization, nowMs: number) =>
  (counts.leases.get(leaseName(lease)) ?? -Infinity) >= nowMs
