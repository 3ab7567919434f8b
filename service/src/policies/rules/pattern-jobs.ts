import { BoundedMap } from '#platform/bounded-map.ts'
import { finish } from '#platform/steps/steps.ts'
import { probePattern } from '#text/pattern-cost.ts'
import type { PatternEngine, PatternSet } from '#text/pattern-engine.ts'

import type { FindInput, SearchInput } from './search-in-threads.ts'
import { findAllInSteps, searchParts } from './searched-parts.ts'

/**
 * Many texts are searched for the same patterns, so some sets are kept. Each pattern that was tried holds up to 8 MB of states:
 * with many more sets a thread would reach its memory limit.
 */
const setsMax = 8

/** What worker threads do with patterns. */
export function createPatternJobs(engine: PatternEngine) {
  /** Those that were used last. */
  const sets = new BoundedMap<string, PatternSet>(setsMax)
  function setOf(key: string, patterns: readonly string[]): PatternSet {
    const set = sets.get(key) ?? engine.compileSet(patterns)
    sets.set(key, set)
    return set
  }
  return {
    probePattern: async ({ pattern }: { pattern: string }) => probePattern(engine, pattern),
    searchPatterns: async ({ key, patterns, parts, wantsPlaces }: SearchInput) =>
      searchParts(setOf(key, patterns), parts, wantsPlaces),
    findMatches: async ({ pattern, width, text, most }: FindInput) =>
      finish(findAllInSteps({ set: setOf(pattern, [pattern]), pattern: 0, width }, text, most)),
  }
}
