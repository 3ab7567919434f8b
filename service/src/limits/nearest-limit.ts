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
  const candidates = scopes.flatMap((scope) =>
    windowMetrics
      .filter((row) => row.unit === unit && limits[scope][row.metric] !== Infinity)
      .map(({ metric, window }): NearestLimit => {
        const limit = limits[scope][metric]
        const used = usage[scope][metric]
        const remaining = Math.max(0, limit - used)
        const resetMs = used === 0 ? 0 : leavesAtMs(window, bucketAt(window, nowMs)) - nowMs
        return { scope, metric, limit, remaining, resetMs }
      }),
  )
  return candidates.toSorted(
    (left, right) => left.remaining - right.remaining || right.resetMs - left.resetMs,
  )[0]
}
