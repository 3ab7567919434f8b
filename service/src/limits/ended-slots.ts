import type { Lease } from './limits.ts'
import type { RedisCounters } from './redis-counters.ts'

/** Beyond this, slots end by themselves, a minute later. */
const endedMax = 10_000

/** Slots of calls that ended while nobody could be told. */
export function createEndedSlots(redis: Pick<RedisCounters, 'release'>) {
  const ended: Lease[] = []
  return {
    isEmpty: () => ended.length === 0,
    add(lease: Lease) {
      if (ended.length < endedMax) ended.push(lease)
    },
    async release() {
      const groups = Map.groupBy(ended.splice(0), ({ organizationId }) => organizationId)
      for (const leases of groups.values()) {
        await redis.release(leases).catch((error: unknown) => {
          ended.push(...leases)
          throw error
        })
      }
    },
  }
}
