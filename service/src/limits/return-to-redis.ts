import type { Metrics } from '#platform/metrics.ts'

import type { Circuit } from './circuit.ts'
import { createEndedSlots } from './ended-slots.ts'
import { createHandOver } from './hand-over.ts'
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

const lookEveryMs = 500
const renewEveryMs = 20_000

/** Looks whether Redis is back and tells it what it has missed; renews the slots of running calls. */
export function returnToRedis({ redis, seen, local, slots, circuit, metrics }: Options) {
  const handOver = createHandOver({ redis, seen, local })
  const ended = createEndedSlots(redis)
  let isLoaded = false
  let isLooking = false
  const timers = [
    setInterval(() => void look(), lookEveryMs).unref(),
    setInterval(() => void renewOrFail(), renewEveryMs).unref(),
  ]

  async function look() {
    if (isLooking) return
    isLooking = true
    // A failure means that it is still away; the next look tries again.
    await comeBack().catch(() => undefined)
    isLooking = false
  }

  async function comeBack() {
    const state = circuit.state()
    if (!isLoaded || state === 'open') await redis.load()
    isLoaded = true
    const isIdle = local.windows.size === 0 && ended.isEmpty()
    if (state === 'returning' || (state === 'closed' && isIdle)) return
    await ended.release()
    await renew()
    // Only an outage can have made Redis forget.
    if (state === 'open') await handOver.tellKnown()
    await handOver.run()
    await ended.release()
    // Nothing may come between the last word and this: from now on Redis counts for itself.
    if (state === 'open') circuit.returned()
    else forget() // single answers were lost without an outage
  }

  function forget() {
    local.forgetAll()
    handOver.reset()
  }

  async function renew() {
    for (const leases of slots.byOrganization()) {
      const held = await redis.renew(leases, leaseMs)
      metrics.limitSlotsLost.inc(leases.length - held)
      // A call that ended while it was renewed must not be held for another minute.
      await redis.release(leases.filter((lease) => !slots.isOpen(lease)))
    }
  }

  async function renewOrFail() {
    if (circuit.state() === 'open') return
    await renew().catch(circuit.failed)
  }

  return {
    forget,
    noteTold: handOver.noteTold,
    /** Frees the slot when Redis is back. */
    releaseLater: ended.add,
    stop: () => {
      for (const timer of timers) clearInterval(timer)
    },
  }
}
