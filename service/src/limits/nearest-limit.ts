import { bucketAt, leavesAtMs } from './counters/buckets.ts'
import { type Metric, windowMetrics } from './limit-metrics.ts'
import { type Limits, type Scope, scopes, type Verdict } from './limits.ts'

export type NearestLimit = {
  scope: Scope
  metric: Metric
  limit: number
  remaining: number
  /** Until the newest bucket has left its window. */
  resetMs: number
}

/**
 * The limit that would block first: the smallest remainder among all windows and scopes, and of equal ones
 * the one that takes longer to recover.
 */
export function findNearestLimit(
  unit: 'requests' | 'tokens',
  { usage, nowMs }: Verdict,
  limits: Limits,
): NearestLimit | undefined {
  let nearest: NearestLimit | undefined
  for (const scope of scopes) {
    for (const { metric, window } of metricsOf[unit]) {
      const limit = limits[scope][metric]
      if (limit === Infinity) continue
      const used = usage[scope][metric]
      const remaining = Math.max(0, limit - used)
      if (nearest && remaining > nearest.remaining) continue
      const resetMs = used === 0 ? 0 : leavesAtMs(window, bucketAt(window, nowMs)) - nowMs
      if (nearest && remaining === nearest.remaining && resetMs <= nearest.resetMs) continue
      nearest = { scope, metric, limit, remaining, resetMs }
    }
  }
  return nearest
}

const metricsOf = {
  requests: windowMetrics.filter(({ unit }) => unit === 'requests'),
  tokens: windowMetrics.filter(({ unit }) => unit === 'tokens'),
} as const
