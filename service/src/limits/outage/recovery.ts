import { createCounters } from '#limits/counters/buckets.ts'
import type { MemoryCounters } from '#limits/counters/memory-counters.ts'
import type { RedisCounters } from '#limits/counters/redis-counters.ts'

import type { CircuitBreaker } from './circuit-breaker.ts'
import type { LastKnownUsage } from './last-known-usage.ts'
import type { ProcessLeases } from './process-leases.ts'
import { sendAll } from './send-all.ts'
import type { UnsentCounts } from './unsent-counts.ts'
import type { UnsureQuotas } from './unsure-quotas.ts'

export type RecoveryDeps = {
  redis: RedisCounters
  circuit: CircuitBreaker
  lastKnown: LastKnownUsage
  local: MemoryCounters
  unsent: UnsentCounts
  unsure: UnsureQuotas
  leases: ProcessLeases
}

const probeEveryMs = 500
const renewEveryMs = 20_000
/**
 * Calls go on while counts are sent. After this many rounds the circuit leaves `open` anyway, because a busy process
 * would never finish: for the half second until the next probe, Redis misses the calls of the last round.
 */
const roundsMax = 5

/** Brings Redis up to date after an outage or a lost answer, and renews the leases of running calls. */
export function startRecovery(deps: RecoveryDeps) {
  const { redis, circuit, lastKnown, local, unsent, unsure, leases } = deps
  let isLoaded = false
  let isProbing = false
  const timers = [
    setInterval(() => void probe(), probeEveryMs).unref(),
    setInterval(() => void renew(), renewEveryMs).unref(),
  ]

  async function probe() {
    if (isProbing) return
    isProbing = true
    await recover().catch(() => undefined) // Redis is still away: the next probe tries again
    isProbing = false
  }

  /** The order is explained in counters-with-fallback.ts. */
  async function recover() {
    const state = circuit.state()
    if (!isLoaded || state === 'open') await redis.load()
    isLoaded = true
    if (state !== 'open' && !hasBacklog()) return
    await leases.releaseEnded()
    await leases.renew()
    if (state === 'open') await restoreLastKnownUsage()
    for (let round = 0; round < roundsMax && hasBacklog(); round++) {
      await unsent.send()
      await unsure.forget()
      await leases.releaseEnded()
    }
    if (state === 'open') circuit.redisReturned()
    // Redis has the calls that were counted here after a lost answer: they no longer use up the share of this process.
    else if (circuit.state() === 'closed') local.forgetAll()
  }

  const hasBacklog = () => !unsent.isEmpty() || !unsure.isEmpty() || leases.hasEnded()

  async function restoreLastKnownUsage() {
    await sendAll(lastKnown.byOrganization(), ([organizationId, fields]) => {
      const counters = createCounters()
      const scopes = [...fields].map(([field, usage]) => ({ field, counters, lastKnown: usage }))
      return redis.absorb(organizationId, scopes)
    })
  }

  async function renew() {
    if (circuit.state() !== 'open') await leases.renew().catch(circuit.tryFailed)
  }

  return {
    stop: () => {
      for (const timer of timers) clearInterval(timer)
    },
  }
}
