import type { Metrics } from '#platform/metrics.ts'

import type { Circuit } from './circuit.ts'
import type { LastSeen } from './last-seen.ts'
import { leaseMs } from './limits.ts'
import type { MemoryCounters } from './memory-counters.ts'
import type { OpenSlots } from './open-slots.ts'
import type { RedisCounters } from './redis-counters.ts'

type Options = {
  redis: RedisCounters
  seen: LastSeen
  local: MemoryCounters
  slots: OpenSlots
  circuit: Circuit
  metrics: Metrics
}

const probeEveryMs = 1000
const renewEveryMs = 20_000

/** Looks whether Redis is back and tells it what it has missed; renews the slots of running calls. */
export function returnToRedis({ redis, seen, local, slots, circuit, metrics }: Options) {
  const timers = [
    setInterval(() => void probe(), probeEveryMs).unref(),
    setInterval(() => void renewOrFail(), renewEveryMs).unref(),
  ]

  async function probe() {
    if (circuit.state() !== 'open') return
    try {
      await redis.load()
      await handOver()
      await renew()
      circuit.returned()
    } catch {
      // It is still away; the next probe tries again.
    }
  }

  /** What was let through without it; and what was known before, which it may have lost. */
  async function handOver() {
    for (const [organizationId, windows] of local.windows) {
      const handOvers = [...windows.counters].map(([field, counters]) => ({
        ...{ field, counters, known: seen.known(organizationId, field) },
      }))
      await redis.absorb(organizationId, handOvers)
    }
  }

  async function renew() {
    for (const leases of slots.byOrganization()) {
      const held = await redis.renew(leases, leaseMs)
      metrics.limitSlotsLost.inc(leases.length - held)
    }
  }

  async function renewOrFail() {
    if (circuit.state() === 'open') return
    await renew().catch(circuit.failed)
  }

  return {
    stop: () => {
      for (const timer of timers) clearInterval(timer)
    },
  }
}
