import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'

import type { Counters } from './counters.ts'
import { createOrganizationCounts, type OrganizationCounts } from './organization-counts.ts'
import { admit, settle } from './rolling-window.ts'
import { organizationUsage } from './usage.ts'

type Options = { now: Clock; organizationsMax?: number }

export type MemoryCounters = Counters & {
  organizations: ReadonlyMap<string, OrganizationCounts>
  forgetAll(): void
}

/** Counts in the memory of this process. Beyond the maximum the least recently active organization is dropped. */
export function createMemoryCounters({ now, organizationsMax = 100_000 }: Options): MemoryCounters {
  const organizations = new BoundedMap<string, OrganizationCounts>(organizationsMax)
  const nowMs = () => now().getTime()

  function open(organizationId: string): OrganizationCounts {
    const counts = organizations.get(organizationId) ?? createOrganizationCounts()
    organizations.set(organizationId, counts)
    return counts
  }

  return {
    organizations,
    forgetAll: () => organizations.clear(),
    async admit(call, limits) {
      // Slots end with the process, so their leases need not expire.
      const lasting = { ...call, leaseMs: call.leaseMs === 0 ? 0 : Infinity }
      return admit(open(call.organizationId), lasting, limits, nowMs())
    },
    settle: async (settlement) => settle(open(settlement.organizationId), settlement, nowMs()),
    read: async (organizationId) =>
      organizationUsage(organizations.get(organizationId) ?? createOrganizationCounts(), nowMs()),
  }
}
