import { BoundedMap } from '#platform/bounded-map.ts'
import { ranTooLong, type ThreadPool } from '#platform/thread-pool.ts'
import type { PatternCost } from '#text/pattern-cost.ts'
import type { PatternComplaint } from '#text/pattern-shape.ts'

/** What patterns cost, as far as this process knows. */
export type PatternCosts = {
  /** The time for 8 KB of a text that is hard for the pattern; undefined where it has not been measured. */
  of(pattern: string): number | undefined
  /** Rises when a cost becomes known. */
  readonly revision: number
  /** What was measured first stays: a cost that changed with the load of the machine would move searches to and fro. */
  learn(pattern: string, costMs: number): void
  /** Measures a pattern for an organization, now. */
  measure(pattern: string, owner: string): Promise<PatternCost | PatternComplaint>
  /** Has patterns measured one after the other, when there is time. */
  want(patterns: readonly string[], owner: string): void
}

/**
 * A hostile pattern can take seconds, and on a busy machine also an ordinary one. The wait is longer than all probes of a rule
 * that has as many as allowed.
 */
const terms = { waitMs: 15_000, runMs: 5000 }
const knownMax = 100_000
const wantedMax = 10_000

const endless: PatternCost = { compileMs: Infinity, searchMs: Infinity, ownWordsMs: Infinity }

export const searchCostOf = ({ searchMs, ownWordsMs }: PatternCost): number =>
  Math.max(searchMs, ownWordsMs)

/** Only worker threads (`thread.ts`) measure patterns, because a pattern of unknown cost could block the event loop. */
export function createPatternCosts(threads: ThreadPool): PatternCosts {
  const known = new BoundedMap<string, number>(knownMax)
  const wanted = new Map<string, string>()
  let revision = 0
  let isMeasuring = false

  function learn(pattern: string, costMs: number) {
    if (known.has(pattern)) return
    known.set(pattern, costMs)
    revision++
  }

  async function measure(pattern: string, owner: string) {
    const { signal } = new AbortController()
    try {
      const measured = await threads.run('probePattern', { pattern }, { ...terms, owner, signal })
      const cost = measured as PatternCost | PatternComplaint
      if (!('problem' in cost)) learn(pattern, searchCostOf(cost))
      return cost
    } catch (thrown) {
      if (ranTooLong(thrown)) return endless
      throw thrown
    }
  }

  async function measureWanted() {
    isMeasuring = true
    for (const [pattern, owner] of wanted) {
      const cost = await measure(pattern, owner).catch(() => null)
      // It goes on being looked for outside of the event loop.
      if (cost === endless || (cost && 'problem' in cost)) learn(pattern, Infinity)
      wanted.delete(pattern)
    }
    isMeasuring = false
  }

  return {
    of: (pattern) => known.get(pattern),
    get revision() {
      return revision
    },
    learn,
    measure,
    want(patterns, owner) {
      for (const pattern of patterns) {
        if (wanted.size < wantedMax && !known.has(pattern)) wanted.set(pattern, owner)
      }
      if (wanted.size > 0 && !isMeasuring) void measureWanted()
    },
  }
}
