import { absorb, type ScopeCounts } from '#limits/counters/absorb.ts'
import { leaseName } from '#limits/counters/counter-names.ts'
import {
  createOrganizationCounts,
  type OrganizationCounts,
} from '#limits/counters/organization-counts.ts'
import type { RedisCounters } from '#limits/counters/redis-counters.ts'
import { count, settle } from '#limits/counters/rolling-window.ts'
import type { LimitedCall, LimitSettlement } from '#limits/limits.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'

import { sendAll } from './send-all.ts'

type Options = { redis: Pick<RedisCounters, 'absorb'>; now: Clock }

const organizationsMax = 100_000

/** The calls that were admitted without Redis and that Redis has yet to count. */
export function createUnsentCounts({ redis, now }: Options) {
  const unsent = new BoundedMap<string, OrganizationCounts>(organizationsMax)

  return {
    isEmpty: () => unsent.size === 0,
    /** Adds a call. A second time with the same lease changes nothing. */
    add(call: LimitedCall) {
      const counts = unsent.get(call.organizationId) ?? createOrganizationCounts()
      if (counts.leases.has(leaseName(call))) return
      count(counts, call, now().getTime())
      // Only marks the call as added: process-leases.ts renews the lease itself, and Redis gets no leases from here.
      if (call.leaseMs > 0) counts.leases.set(leaseName(call), Infinity)
      unsent.set(call.organizationId, counts)
    },
    /** Corrects what an unsent call reserved to what it used. */
    settle(settlement: LimitSettlement) {
      const counts = unsent.get(settlement.organizationId)
      if (counts) settle(counts, settlement, now().getTime())
    },
    /** Sends everything. What Redis does not confirm stays, so a lost confirmation makes calls count twice. */
    async send() {
      // A copy: calls that are added while others are on their way wait for the next send.
      await sendAll([...unsent], async ([organizationId, counts]) => {
        unsent.delete(organizationId)
        try {
          await redis.absorb(organizationId, scopesOf(counts))
        } catch (error) {
          const added = unsent.get(organizationId)
          if (added) absorb(counts, scopesOf(added), now().getTime())
          for (const [name, endsAtMs] of added?.leases ?? []) counts.leases.set(name, endsAtMs)
          unsent.set(organizationId, counts)
          throw error
        }
      })
    },
  }
}
export type UnsentCounts = ReturnType<typeof createUnsentCounts>

const scopesOf = ({ counters }: OrganizationCounts): ScopeCounts[] =>
  [...counters].map(([field, each]) => ({ field, counters: each, lastKnown: null }))
