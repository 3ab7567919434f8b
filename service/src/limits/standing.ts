import { bucketAt, leavesAtMs } from './buckets.ts'
import {
  type Amounts,
  type Limits,
  type Metric,
  type Scope,
  scopes,
  type Verdict,
} from './limits.ts'

/** One limit of one scope, and where a call stands with it. */
export type Standing = {
  scope: Scope
  metric: Metric
  limit: number
  remaining: number
  /** Until what was counted last has left its window. */
  resetMs: number
}

const windowsOf = {
  requests: ['requests_per_minute', 'requests_per_day'],
  tokens: ['tokens_per_minute', 'tokens_per_day'],
} as const satisfies Record<string, readonly Metric[]>

/**
 * The limit that would block first: the smallest remainder among all windows and scopes, and of equal ones
 * the one that takes longer to recover (G8.7, G8.8).
 */
export function closest(
  unit: 'requests' | 'tokens',
  { usage, nowMs }: Verdict,
  limits: Limits,
): Standing | undefined {
  const standings = windowsOf[unit].flatMap((metric) =>
    scopes.map((scope) => standingOf(scope, metric, { limits, usage: usage[scope], nowMs })),
  )
  return standings
    .filter(({ limit }) => limit !== Infinity)
    .toSorted((left, right) => left.remaining - right.remaining || right.resetMs - left.resetMs)[0]
}

type Facts = { limits: Limits; usage: Amounts; nowMs: number }

function standingOf(scope: Scope, metric: Metric, { limits, usage, nowMs }: Facts): Standing {
  const limit = limits[scope][metric]
  const used = usage[metric]
  const window = metric.endsWith('minute') ? 'minute' : 'day'
  return {
    scope,
    metric,
    limit,
    remaining: Math.max(0, limit - used),
    resetMs: used === 0 ? 0 : leavesAtMs(window, bucketAt(window, nowMs)) - nowMs,
  }
}
