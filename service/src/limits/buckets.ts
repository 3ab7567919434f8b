/** What was counted in one second, or in one hour. */
export type Bucket = { id: number; requests: number; tokens: number }

/** The buckets of one scope, the oldest first: seconds of the last minute, hours of the last day. */
export type BucketCounters = { minute: Bucket[]; day: Bucket[] }

export const windows = {
  minute: { bucketMs: 1000, lengthMs: 60_000 },
  day: { bucketMs: 3_600_000, lengthMs: 86_400_000 },
} as const
export type Window = keyof typeof windows
export type Unit = 'requests' | 'tokens'

export const bucketAt = (window: Window, atMs: number) =>
  Math.floor(atMs / windows[window].bucketMs)

/** When a bucket leaves its window: a bucket counts until its end is older than the window. */
export const leavesAtMs = (window: Window, id: number) =>
  (id + 1) * windows[window].bucketMs + windows[window].lengthMs

export function liveBuckets(
  counters: BucketCounters | undefined,
  window: Window,
  nowMs: number,
): Bucket[] {
  return (counters?.[window] ?? []).filter(({ id }) => leavesAtMs(window, id) > nowMs)
}

export const sum = (buckets: readonly Bucket[], unit: Unit) =>
  buckets.reduce((total, bucket) => total + bucket[unit], 0)

/** Counts now, and forgets what has left its window. */
export function addTo(
  counters: BucketCounters,
  { requests, tokens }: { requests: number; tokens: number },
  nowMs: number,
) {
  for (const window of ['minute', 'day'] as const) {
    const buckets = liveBuckets(counters, window, nowMs)
    counters[window] = buckets
    const id = bucketAt(window, nowMs)
    const newest = buckets.at(-1)
    // A clock that steps back counts into the newest bucket: order is kept, and erring is on the safe side.
    if (newest && newest.id >= id) {
      newest.requests += requests
      newest.tokens += tokens
    } else buckets.push({ id, requests, tokens })
  }
}

/** Two counts as one; what both have is added up. */
export function merge(one: readonly Bucket[], other: readonly Bucket[]): Bucket[] {
  const byId = new Map(one.map((bucket) => [bucket.id, { ...bucket }]))
  for (const { id, requests, tokens } of other) {
    const found = byId.get(id) ?? { id, requests: 0, tokens: 0 }
    byId.set(id, { id, requests: found.requests + requests, tokens: found.tokens + tokens })
  }
  return [...byId.values()].toSorted((left, right) => left.id - right.id)
}

/** What one count has more than another. */
export const beyond = (
  now: BucketCounters,
  before: BucketCounters | undefined,
): BucketCounters => ({
  minute: more(now.minute, before?.minute ?? []),
  day: more(now.day, before?.day ?? []),
})

function more(now: readonly Bucket[], before: readonly Bucket[]): Bucket[] {
  return now
    .map(({ id, requests, tokens }) => {
      const known = before.find((each) => each.id === id)
      return {
        id,
        requests: Math.max(0, requests - (known?.requests ?? 0)),
        tokens: Math.max(0, tokens - (known?.tokens ?? 0)),
      }
    })
    .filter(({ requests, tokens }) => requests > 0 || tokens > 0)
}
