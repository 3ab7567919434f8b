import type { ScopeLimits } from '@gatehouse/contract/limits'

type Unit = 'requests' | 'tokens'

/** The rolling windows and the length of their buckets, in the order of the byte layout. */
export const windows = {
  minute: { bucketMs: 1000, lengthMs: 60_000 },
  day: { bucketMs: 3_600_000, lengthMs: 86_400_000 },
} as const
export type LimitWindow = keyof typeof windows
export const windowNames = Object.keys(windows) as readonly LimitWindow[]

type LimitMetric = {
  metric: keyof ScopeLimits
  /** How many bytes its usage takes in a packed verdict. */
  bytes: 4 | 6
} & ({ unit: Unit; window: LimitWindow } | { unit: 'slots'; window: null })

/**
 * Every limit that a scope has. Of several refusals with equal waits, the first in this order is reported.
 * A new metric takes a row here, its place in service/assets/limiter.lua, its values in tiers.ts, and its member in
 * the contract.
 */
export const limitMetrics = [
  { metric: 'requests_per_minute', window: 'minute', unit: 'requests', bytes: 4 },
  { metric: 'requests_per_day', window: 'day', unit: 'requests', bytes: 4 },
  { metric: 'tokens_per_minute', window: 'minute', unit: 'tokens', bytes: 6 },
  { metric: 'tokens_per_day', window: 'day', unit: 'tokens', bytes: 6 },
  { metric: 'concurrent_requests', window: null, unit: 'slots', bytes: 4 },
] as const satisfies readonly LimitMetric[]

/**
 * The number of the byte layout that follows from these tables. Processes of two releases use the same Redis
 * during a rollout, so a change of the tables takes the next number, and counters/function-library.ts the next
 * version: each release then has functions and counters of its own.
 */
export const layoutNumber: number = 1

export type Metric = (typeof limitMetrics)[number]['metric']
export const metricNames: readonly Metric[] = limitMetrics.map(({ metric }) => metric)

/** The metrics that count in a window: all but the slots. */
export const windowMetrics = limitMetrics.filter((row) => row.window !== null)

/** How much of a unit is used in a window; 0 where no metric limits it. */
export function usedIn(
  amounts: Readonly<Record<Metric, number>>,
  window: LimitWindow,
  unit: Unit,
): number {
  const row = windowMetrics.find((each) => each.window === window && each.unit === unit)
  return row ? amounts[row.metric] : 0
}
