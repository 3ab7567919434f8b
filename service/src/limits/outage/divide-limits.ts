import type { KnownUsage } from '#limits/counters/absorb.ts'
import { limitMetrics, type LimitWindow, windows } from '#limits/limit-metrics.ts'
import { type Amounts, type Limits, type Scope, scopes } from '#limits/limits.ts'

type Circumstances = {
  /** How many processes share the limits, this one included. */
  processes: number
  lastKnown: Readonly<Partial<Record<Scope, KnownUsage | undefined>>>
  /** Slots in each scope that Redis gave to running calls of this process. */
  slotsFromRedis: Readonly<Record<Scope, number>>
  nowMs: number
}

/** A bucket counts until its end is older than the window. */
const countsForMs = (window: LimitWindow) => windows[window].bucketMs + windows[window].lengthMs

/**
 * This process's share of the limits, which it enforces while it cannot ask Redis: what the last known usage leaves of each
 * scope's limits, divided by the number of processes and rounded up. All processes together then admit at most one call per
 * process too many. Known usage counts until its window has passed; without known usage the whole limit is divided.
 */
export function divideLimits(limits: Limits, circumstances: Circumstances): Limits {
  const { processes, lastKnown, slotsFromRedis, nowMs } = circumstances
  const divide = (scope: Scope, { metric, window }: (typeof limitMetrics)[number]) => {
    const limit = limits[scope][metric]
    if (!window) {
      const slots = slotsFromRedis[scope]
      // A process that holds no slot may always take one.
      return Math.max(slots === 0 ? 1 : 0, Math.ceil(limit / processes) - slots)
    }
    const usage = lastKnown[scope]
    const isCurrent = usage && nowMs - usage.atMs < countsForMs(window)
    const left = limit - (isCurrent ? usage.amounts[metric] : 0)
    return Math.ceil(Math.max(0, left) / processes)
  }
  const divideScope = (scope: Scope) =>
    Object.fromEntries(limitMetrics.map((row) => [row.metric, divide(scope, row)])) as Amounts
  return Object.fromEntries(scopes.map((scope) => [scope, divideScope(scope)])) as Limits
}
