import { windows } from './buckets.ts'
import { type Amounts, type Limits, type Scope, scopes } from './limits.ts'

/** What everybody together had used in each scope of a call when it was last seen. */
export type Known = Readonly<Partial<Record<Scope, { atMs: number; amounts: Amounts }>>>

type Circumstances = {
  /** How many processes share the limits, this one included. */
  processes: number
  known: Known
  /** Slots this process holds in each scope that were given where everybody counts. */
  slots: Readonly<Record<Scope, number>>
  nowMs: number
}

/** A bucket counts until its end is older than the window. */
const [minuteMs, dayMs] = [windows.minute, windows.day].map(
  ({ bucketMs, lengthMs }) => bucketMs + lengthMs,
) as [number, number]

/**
 * What one process may let through while it cannot ask the others: its share of what was left when it last
 * heard, rounded up. If all have heard of a scope, they let at most one more per process through; who has
 * not takes a share of the whole. Once what was used then has left its window, so do the others.
 */
export function shareOf(limits: Limits, circumstances: Circumstances): Limits {
  const { processes, known, slots, nowMs } = circumstances
  const share = (scope: Scope): Amounts => {
    const limit = limits[scope]
    const seen = known[scope]
    const part = (metric: keyof Amounts, windowMs: number) => {
      const isCounting = seen && nowMs - seen.atMs < windowMs
      const left = limit[metric] - (isCounting ? seen.amounts[metric] : 0)
      return Math.ceil(Math.max(0, left) / processes)
    }
    return {
      requests_per_minute: part('requests_per_minute', minuteMs),
      requests_per_day: part('requests_per_day', dayMs),
      tokens_per_minute: part('tokens_per_minute', minuteMs),
      tokens_per_day: part('tokens_per_day', dayMs),
      concurrent_requests: Math.max(
        slots[scope] === 0 ? 1 : 0,
        Math.ceil(limit.concurrent_requests / processes) - slots[scope],
      ),
    }
  }
  return Object.fromEntries(scopes.map((scope) => [scope, share(scope)])) as Limits
}
