import type { Counters } from '#limits/counters/counters.ts'
import { createMemoryCounters } from '#limits/counters/memory-counters.ts'
import type { RedisCounters } from '#limits/counters/redis-counters.ts'
import { isAdmitted, type LimitedCall, type Limits, type Verdict } from '#limits/limits.ts'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { type CircuitState, createCircuitBreaker } from './circuit-breaker.ts'
import { divideLimits } from './divide-limits.ts'
import { createLastKnownUsage } from './last-known-usage.ts'
import { createProcessLeases } from './process-leases.ts'
import { type RecoveryDeps, startRecovery } from './recovery.ts'
import { createUnsentCounts } from './unsent-counts.ts'
import { createUnsureQuotas } from './unsure-quotas.ts'

/**
 * Counters that outlast Redis. While Redis answers, it decides about every call, for all processes. While it
 * does not, each process decides alone: it admits its share of what was left of the limits when Redis last
 * answered, so no call fails because Redis is away. A Redis that returns may have lost everything. Each process
 * then restores the usage that Redis last reported to it, sends the calls that it admitted alone, and adds the
 * leases of its running calls again. Other processes may do so a probe later, so for two seconds a call must
 * fit both the share of its process and the limits in Redis.
 *
 * | state     | who decides    | what admits a call            | what is remembered         | how it is left            |
 * |-----------|----------------|-------------------------------|----------------------------|---------------------------|
 * | closed    | Redis          | it fits the limits in Redis;  | last known usage, leases   | five tries in a row fail  |
 * |           |                | if two answers are lost, the  | of running calls; unsent   | within two seconds: open. |
 * |           |                | share of this process         | calls until the next probe | Late ones count once in   |
 * |           |                |                               |                            | 100 ms                    |
 * | open      | this process   | it fits the share             | also local counts, unsent  | a probe, every 500 ms,    |
 * |           |                |                               | calls, ended leases        | brings Redis up to date:  |
 * |           |                |                               |                            | returning                 |
 * | returning | this process,  | it fits the share, and then   | as in open                 | after two seconds: closed |
 * |           | then Redis     | the limits in Redis           |                            | one try fails: open       |
 *
 * What must stay true:
 *
 * - Local counts are what the share is compared with; they are forgotten when the circuit closes. Unsent calls
 *   are kept apart from them, and only a confirmed send removes them. Calls go on while the recovery awaits
 *   Redis, so one may be admitted after the last send: the next probe sends it, in whichever state.
 * - Last known usage is restored before unsent calls are sent: Redis restores a scope only while it has no
 *   counts of it, and a call that was sent is one.
 * - A call in `returning` is unsent only if Redis did not answer: otherwise Redis has counted it.
 * - A call that ends is removed from the running leases before Redis settles it. A renewal that is under way may
 *   restore its lease in Redis after the settlement; it then finds that the call is not running any more, and
 *   releases the lease.
 * - Quotas are not sent: counters of calls that were counted or ended without Redis are forgotten there, and loaded from the
 *   database again. The leases of running calls are renewed before that, so that what they reserve is counted.
 * - Ended leases are released before the circuit leaves `open`, those of the last round aside: each holds a slot for
 *   up to a minute.
 */
export function createCountersWithFallback(options: Options) {
  const { redis, now, log, metrics, kind, processes } = options
  const lastKnown = createLastKnownUsage({ now })
  const local = createMemoryCounters({ now: lastKnown.redisNow })
  const unsent = createUnsentCounts({ redis, now: lastKnown.redisNow })
  const leases = createProcessLeases({ redis, metrics })
  const unsure = createUnsureQuotas({ redis })
  const circuit = createCircuitBreaker({ now, onChange })
  const parts: Parts = { redis, circuit, lastKnown, local, unsent, unsure, leases, processes }
  const recovery = startRecovery(parts)

  function onChange(state: CircuitState) {
    metrics.limitsAreLocal.set({ kind }, state === 'closed' ? 0 : 1)
    log.event(logCodes[state], { kind, processes: processes() })
    if (state === 'closed') local.forgetAll()
  }

  const counters: Counters = {
    async admit(call, limits) {
      const state = circuit.state()
      if (state === 'open') return admitAlone(parts, call, limits)
      if (state === 'returning') {
        const byShare = await admitByShare(parts, call, limits)
        if (!isAdmitted(byShare)) return byShare
      }
      const answer = await admitInRedis(parts, call, limits)
      const verdict = answer ?? (await admitAlone(parts, call, limits))
      // The share may have admitted what Redis refuses, and a Redis whose answer was lost what the share refuses.
      const mayBeAdmitted = state === 'returning' || !answer
      if (!isAdmitted(verdict) && mayBeAdmitted) await undo(call, verdict)
      return verdict
    },
    async settle(settlement) {
      leases.end(settlement)
      unsent.settle(settlement)
      const isLocal = local.organizations.has(settlement.organizationId)
      const settledLocally = isLocal ? await local.settle(settlement) : notHeld
      try {
        if (circuit.state() !== 'open') return await redis.settle(settlement)
      } catch (error) {
        circuit.tryFailed(error)
      }
      // Redis goes on counting all that was reserved: too much rather than too little.
      leases.releaseLater(settlement)
      unsure.addEnded(settlement)
      return settledLocally
    },
    async read(organizationId) {
      if (circuit.state() === 'open') return local.read(organizationId)
      return redis.read(organizationId).catch(() => local.read(organizationId))
    },
  }
  const undo = (call: LimitedCall, { nowMs }: Verdict) => {
    unsure.addEnded(call) // its request may be counted
    return counters.settle({ ...call, reserved: call.tokens, used: 0, admittedAtMs: nowMs })
  }
  const isExact = () => circuit.state() === 'closed'
  const { redisNow } = lastKnown
  return { ...counters, now: redisNow, forget: redis.forget, isExact, stop: recovery.stop }
}

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

const notHeld = { wasHeld: false, credits: [] }

const logCodes = {
  closed: 'limits_counted_in_redis',
  open: 'limits_counted_locally',
  returning: 'limits_returning_to_redis',
} as const satisfies Record<CircuitState, string>

type Parts = RecoveryDeps & { processes: () => number }

/** Admits a call that Redis has not counted. */
async function admitAlone(parts: Parts, call: LimitedCall, limits: Limits): Promise<Verdict> {
  const verdict = await admitByShare(parts, call, limits)
  if (isAdmitted(verdict)) {
    parts.unsent.add(call)
    parts.unsure.addRunning(call)
  } else if (verdict.quotas?.refusal) parts.unsent.add({ ...call, tokens: 0, leaseMs: 0 })
  return verdict
}

async function admitByShare(parts: Parts, call: LimitedCall, limits: Limits): Promise<Verdict> {
  const { lastKnown, leases, local, processes } = parts
  const share = divideLimits(limits, {
    processes: processes(),
    lastKnown: lastKnown.find(call),
    slotsFromRedis: leases.countFromRedis(call),
    nowMs: lastKnown.redisNow().getTime(),
  })
  const quotas = call.quotas && { ...call.quotas, sharedBy: processes() }
  const verdict = await local.admit({ ...call, quotas }, share)
  if (isAdmitted(verdict)) leases.start(call, { isFromRedis: false })
  return verdict
}

/** Null if Redis does not answer. Tries once more if an answer is lost: with the same lease the call is counted once. */
async function admitInRedis(
  parts: Parts,
  call: LimitedCall,
  limits: Limits,
): Promise<Verdict | null> {
  const { circuit, lastKnown, leases } = parts
  const isRepeatable = call.leaseMs > 0
  let verdict = await tryOnce(parts, call, limits)
  if (!verdict && isRepeatable) verdict = await tryOnce(parts, call, limits)
  if (!verdict) return null
  circuit.trySucceeded()
  lastKnown.record(call, verdict)
  if (isAdmitted(verdict)) leases.start(call, { isFromRedis: true })
  return verdict
}

async function tryOnce({ redis, circuit }: Parts, call: LimitedCall, limits: Limits) {
  try {
    return await redis.admit(call, limits)
  } catch (error) {
    circuit.tryFailed(error)
    return null
  }
}
