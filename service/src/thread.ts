import { BoundedMap } from '#platform/bounded-map.ts'
import { serveThread } from '#platform/serve-thread.ts'
import { probePattern } from '#text/pattern-cost.ts'
import { loadPatternEngine, type PatternSet } from '#text/pattern-engine.ts'
import { countTexts, useRanks } from '#tokens/count.ts'
import type { RankTable } from '#tokens/rank-table.ts'
import type { Encoding } from '#tokens/ranks.ts'

type ProbeInput = { pattern: string }
type SearchInput = { patterns: readonly string[]; text: string }
type CountInput = { encoding: Encoding; ranks: RankTable; texts: string[] }

const engine = loadPatternEngine()
/** Those that were used last: many texts are searched for the same patterns. */
const sets = new BoundedMap<string, PatternSet>(32)

function setOf(patterns: readonly string[]): PatternSet {
  const key = JSON.stringify(patterns)
  const set = sets.get(key) ?? engine.compileSet(patterns)
  sets.set(key, set)
  return set
}

/** The entry of our worker threads: computations that would hold up the event loop. */
serveThread({
  countTexts({ encoding, ranks, texts }: CountInput, isCancelled) {
    useRanks(encoding, ranks)
    return countTexts(encoding, texts, () => {
      if (isCancelled()) throw new Error('Nobody waits for this count.')
      return undefined
    })
  },
  probePattern: async ({ pattern }: ProbeInput) => probePattern(engine, pattern),
  searchPatterns: async ({ patterns, text }: SearchInput) => setOf(patterns).hits(text),
})
