import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { createShareAdmission } from './admit-by-share.ts'
import { type Circuit, type CircuitState, createCircuit } from './circuit.ts'
import type { Counters } from './counters.ts'
import { createLastSeen } from './last-seen.ts'
import type { Attempt, Limits, Verdict } from './limits.ts'
import { createMemoryCounters } from './memory-counters.ts'
import { createOpenSlots } from './open-slots.ts'
import type { RedisCounters } from './redis-counters.ts'
import { returnToRedis } from './return-to-redis.ts'

type Options = {
  redis: RedisCounters
  now: Clock
  log: Log
  metrics: Metrics
  /** Which calls are counted. */
  kind: string
  /** How many processes share the limits, this one included. */
  processes: () => number
}

/**
 * Counts in Redis, and while Redis is away in this process's own memory, by its share of the limits. When
 * Redis is back, what was counted here is handed over, slots are taken there again, and for a moment both
 * must agree, until every process has come back. Nobody is refused because a counter is away.
 */
export function createSharedCounters(options: Options) {
  const { redis, now, log, metrics, kind, processes } = options
  const seen = createLastSeen({ now })
  const local = createMemoryCounters({ now: seen.clock })
  const slots = createOpenSlots()
  const circuit = createCircuit({ now, onChange })
  const admitLocal = createShareAdmission({ local, seen, slots, processes })
  const returning = returnToRedis({ redis, seen, local, slots, circuit, metrics })

  function onChange(state: CircuitState) {
    metrics.limitsAreLocal.set({ kind }, state === 'closed' ? 0 : 1)
    log.event(`limits_${state}`, { kind, processes: processes() })
    if (state === 'closed') returning.forget()
  }

  async function admitShared(attempt: Attempt, limits: Limits, own: Verdict | null) {
    const isRepeatable = attempt.leaseMs > 0
    const verdict = await askTwice(circuit, isRepeatable, () => redis.admit(attempt, limits))
    seen.note(attempt, verdict)
    if (!verdict.refusal) slots.open(attempt, 'shared')
    if (own && !verdict.refusal) returning.noteTold(attempt, own)
    return verdict
  }

  const counters: Counters = {
    async admit(attempt, limits) {
      const state = circuit.state()
      if (state === 'open') return admitLocal(attempt, limits)
      const own = state === 'returning' ? await admitLocal(attempt, limits) : null
      if (own?.refusal) return own
      let isLost = false
      const verdict = await admitShared(attempt, limits, own).catch(() => {
        isLost = true
        circuit.failed()
        return admitLocal(attempt, limits)
      })
      // Let in by one and refused by the other: nothing may stay held.
      if (verdict.refusal && (own || isLost)) await settleNothing(attempt, verdict)
      return verdict
    },
    async settle(settlement) {
      slots.close(settlement)
      const isLocal = local.windows.has(settlement.organizationId)
      const wasHeld = isLocal && (await local.settle(settlement))
      const later = () => {
        returning.releaseLater(settlement)
        return wasHeld // and what was reserved stays counted: strict, not wrong
      }
      if (circuit.state() === 'open') return later()
      return redis.settle(settlement).catch(() => {
        circuit.failed()
        return later()
      })
    },
    async read(organizationId) {
      if (circuit.state() === 'open') return local.read(organizationId)
      return redis.read(organizationId).catch(() => local.read(organizationId))
    },
  }
  const settleNothing = async (attempt: Attempt, { nowMs }: Verdict) =>
    counters.settle({ ...attempt, reserved: attempt.tokens, used: 0, admittedAtMs: nowMs })
  const isExact = () => circuit.state() === 'closed'
  return { ...counters, forget: redis.forget, isExact, stop: returning.stop }
}

/** A lost answer is asked for once more: with the same lease nothing is counted twice. */
async function askTwice<T>(
  circuit: Circuit,
  isRepeatable: boolean,
  ask: () => Promise<T>,
): Promise<T> {
  const answer = await ask().catch((error: unknown) => {
    circuit.failed()
    if (!isRepeatable) throw error
    return ask()
  })
  circuit.succeeded()
  return answer
}
