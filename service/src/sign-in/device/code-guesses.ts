import { rateLimitExceeded } from '#platform/api-error.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'

/** Who types codes: each of these has a number of wrong ones. */
export type CodeGuesser = { session: string; address: string; organization: string }

const windowMs = 10 * 60_000
/** In a window. A code lives as long, so that of 10,000 open ones a session finds none with a probability of 99.9996 %. */
const wrongMax = { session: 10, address: 30, organization: 100 }
const countsMax = 10_000

/**
 * Bounds how many wrong codes people can type. Counts are those of one process, in bounded memory: without a store to lose, the
 * bound cannot fail open. Each attempt is counted before its code is looked up, so that many at the same time are no way around it.
 */
export function createCodeGuesses({
  now,
  steadyNow,
  onRefused,
}: {
  now: Clock
  steadyNow: Clock
  onRefused: () => void
}) {
  const counts = new BoundedMap<string, { startMs: number; wrong: number }>(countsMax)

  function countOf(name: string, nowMs: number) {
    const known = counts.get(name)
    if (known && nowMs - known.startMs < windowMs) return known
    const added = { startMs: nowMs, wrong: 0 }
    counts.set(name, added)
    return added
  }

  return {
    /** Counts an attempt as a wrong one; throws a 429 where there were too many. Returns how to take it back. */
    take(guesser: CodeGuesser): () => void {
      const nowMs = steadyNow().getTime()
      const all = Object.entries(wrongMax).map(([where, limit]) => ({
        where,
        limit,
        count: countOf(`${where} ${guesser[where as keyof CodeGuesser]}`, nowMs),
      }))
      const full = all.find(({ limit, count }) => count.wrong >= limit)
      if (full) {
        onRefused()
        const { where, limit, count } = full
        const waitMs = count.startMs + windowMs - nowMs
        throw rateLimitExceeded({ what: 'wrong codes', where, limit, waitMs, now: now() })
      }
      for (const { count } of all) count.wrong++
      return () => {
        for (const { count } of all) count.wrong--
      }
    },
  }
}
export type CodeGuesses = ReturnType<typeof createCodeGuesses>
