import { type LimitWindow, windowNames, windows } from '#limits/limit-metrics.ts'

/** What was counted in one second, or in one hour. The id is the time divided by the bucket's length. */
export type Bucket = { id: number; requests: number; tokens: number }

/** The buckets of one scope, the oldest first. */
export type BucketCounters = Record<LimitWindow, Bucket[]>

export const createCounters = () =>
  Object.fromEntries(
    windowNames.map((window): [string, Bucket[]] => [window, []]),
  ) as BucketCounters

export const bucketAt = (window: LimitWindow, atMs: number) =>
  Math.floor(atMs / windows[window].bucketMs)

/** When a bucket leaves its window: a bucket counts until its end is older than the window. */
export const leavesAtMs = (window: LimitWindow, id: number) =>
  (id + 1) * windows[window].bucketMs + windows[window].lengthMs

export function liveBuckets(
  counters: BucketCounters | undefined,
  window: LimitWindow,
  nowMs: number,
): Bucket[] {
  return (counters?.[window] ?? []).filter(({ id }) => leavesAtMs(window, id) > nowMs)
}

export const sum = (buckets: readonly Bucket[], unit: 'requests' | 'tokens') =>
  buckets.reduce((total, bucket) => total + bucket[unit], 0)

/** What is added to the buckets of each window. */
export type Amount = { requests: number; tokens: Readonly<Record<LimitWindow, number>> }

/** Adds an amount to the current buckets, and drops those that have left their window. */
export function addTo(
  counters: BucketCounters,
  { requests, tokens: tokensOf }: Amount,
  nowMs: number,
) {
  for (const window of windowNames) {
    const tokens = tokensOf[window]
    const buckets = liveBuckets(counters, window, nowMs)
    counters[window] = buckets
    const id = bucketAt(window, nowMs)
    const newest = buckets.at(-1)
    // When the clock has stepped back, the newest bucket counts: ids stay sorted, and it counts longer.
    if (newest && newest.id >= id) {
      newest.requests += requests
      newest.tokens += tokens
    } else buckets.push({ id, requests, tokens })
  }
}

/** Merges two lists of buckets; those with the same id are added up. */
export function merge(left: readonly Bucket[], right: readonly Bucket[]): Bucket[] {
  const byId = new Map(left.map((bucket) => [bucket.id, { ...bucket }]))
  for (const { id, requests, tokens } of right) {
    const found = byId.get(id) ?? { id, requests: 0, tokens: 0 }
    byId.set(id, { id, requests: found.requests + requests, tokens: found.tokens + tokens })
  }
  return [...byId.values()].toSorted((one, other) => one.id - other.id)
}
