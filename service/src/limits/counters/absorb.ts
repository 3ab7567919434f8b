import { usedIn, type LimitWindow, windowNames } from '#limits/limit-metrics.ts'
import type { Amounts } from '#limits/limits.ts'

import {
  type Bucket,
  bucketAt,
  type BucketCounters,
  createCounters,
  leavesAtMs,
  liveBuckets,
  merge,
} from './buckets.ts'
import type { OrganizationCounts } from './organization-counts.ts'

/** Counts of one scope to be added to others. */
export type ScopeCounts = {
  field: string
  counters: BucketCounters
  /** The last known usage of the scope, which is restored if there are no counts of it. */
  lastKnown: KnownUsage | null
}

/** The usage of a scope by all processes, and when Redis reported it. */
export type KnownUsage = { atMs: number; amounts: Amounts }

/** Adds counts that were made elsewhere, and restores the last known usage of scopes without counts. */
export function absorb(
  counts: OrganizationCounts,
  added: readonly ScopeCounts[],
  nowMs: number,
): void {
  for (const { field, counters, lastKnown } of added) {
    const existing = counts.counters.get(field)
    const merged = createCounters()
    for (const window of windowNames) {
      const restored = lastKnown && !existing ? restore(window, lastKnown, nowMs) : []
      const before = existing ? liveBuckets(existing, window, nowMs) : restored
      merged[window] = merge(before, liveBuckets(counters, window, nowMs))
    }
    if (merged.day.length > 0) counts.counters.set(field, merged)
  }
}

/** Last known usage as one bucket; none if it has left the window. */
function restore(window: LimitWindow, { atMs, amounts }: KnownUsage, nowMs: number): Bucket[] {
  const id = bucketAt(window, atMs)
  if (leavesAtMs(window, id) <= nowMs) return []
  const requests = usedIn(amounts, window, 'requests')
  const tokens = usedIn(amounts, window, 'tokens')
  return requests > 0 || tokens > 0 ? [{ id, requests, tokens }] : []
}
