import type { RedisCounters } from '#limits/counters/redis-counters.ts'
import { type Lease, leaseMs, type Scope, type ScopeIds } from '#limits/limits.ts'
import type { Metrics } from '#platform/metrics.ts'

import { sendAll } from './send-all.ts'

type Options = {
  redis: Pick<RedisCounters, 'renew' | 'release' | 'renewQuotas' | 'forgetQuotas'>
  metrics: Metrics
}

/** Redis does nothing else while it renews or releases a batch. */
const batchMax = 500

/** Further leases are not released: they expire a minute later. */
const endedMax = 10_000

/** The leases of this process: those of running calls, and those that ended while Redis was away. */
export function createProcessLeases({ redis, metrics }: Options) {
  const running = new Map<string, { lease: Lease; isFromRedis: boolean }>()
  const ended: Lease[] = []

  async function renewQuotas(leases: readonly Lease[]) {
    for (const each of byPeriod(leases)) await redis.renewQuotas(each, leaseMs)
    // As with slots: what a call reserved that ended meanwhile was just reserved again.
    const isEnded = ({ leaseId }: Lease) => !running.has(leaseId)
    for (const each of byPeriod(leases.filter(isEnded))) await redis.forgetQuotas(each)
  }

  return {
    start(lease: Lease & { leaseMs: number }, { isFromRedis }: { isFromRedis: boolean }) {
      if (lease.leaseMs > 0) running.set(lease.leaseId, { lease, isFromRedis })
    },
    end: ({ leaseId }: { leaseId: string }) => void running.delete(leaseId),

    /** How many running calls of each scope have a slot that Redis gave. */
    countFromRedis({ organizationId, projectId, keyId }: ScopeIds): Record<Scope, number> {
      const ofOrganization = [...running.values()]
        .filter(({ isFromRedis }) => isFromRedis)
        .map(({ lease }) => lease)
        .filter((lease) => lease.organizationId === organizationId)
      const ofProject = ofOrganization.filter((lease) => lease.projectId === projectId)
      return {
        organization: ofOrganization.length,
        project: ofProject.length,
        key: ofProject.filter((lease) => lease.keyId === keyId).length,
      }
    },

    /** Extends the leases of running calls; Redis adds those that it lost or never had. */
    async renew() {
      const leases = [...running.values()].map(({ lease }) => lease)
      await sendAll(byOrganization(leases), async (group) => {
        const held = await redis.renew(group, leaseMs)
        metrics.limitSlotsLost.inc(group.length - held)
        // A call that ended during the renewal would otherwise hold its slot for another minute.
        await redis.release(group.filter(({ leaseId }) => !running.has(leaseId)))
        await renewQuotas(group)
      })
    },

    hasEnded: () => ended.length > 0,
    releaseLater(lease: Lease) {
      if (ended.length < endedMax) ended.push(lease)
    },
    async releaseEnded() {
      const unreleased = new Set(byOrganization(ended.splice(0)))
      try {
        await sendAll([...unreleased], async (group) => {
          await redis.release(group)
          unreleased.delete(group)
        })
      } finally {
        for (const group of unreleased) ended.push(...group)
      }
    },
  }
}
export type ProcessLeases = ReturnType<typeof createProcessLeases>

/** What leases of one organization reserve, by period. */
function byPeriod(leases: readonly Lease[]) {
  const reserved = leases.flatMap(({ organizationId, quotas }) =>
    (quotas?.reservations ?? []).map(({ name, period, counters }) => ({
      organizationId,
      name,
      period,
      fields: counters.map(({ field }) => field),
    })),
  )
  return [...Map.groupBy(reserved, ({ period }) => period.name).values()].map((group) => ({
    ...(group[0] as (typeof reserved)[number]),
    names: group.map(({ name }) => name),
    fields: [...new Set(group.flatMap(({ fields }) => fields))],
  }))
}

/** Batches of leases of one organization each. */
const byOrganization = (leases: readonly Lease[]): Lease[][] =>
  [...Map.groupBy(leases, ({ organizationId }) => organizationId).values()].flatMap((group) =>
    Array.from({ length: Math.ceil(group.length / batchMax) }, (_, index) =>
      group.slice(index * batchMax, (index + 1) * batchMax),
    ),
  )
