import { serveThread } from '#platform/serve-thread.ts'
import { createPatternJobs } from '#policies/rules/pattern-jobs.ts'
import { loadPatternEngine } from '#text/pattern-engine.ts'
import { countTexts, useRanks } from '#tokens/count.ts'
import type { RankTable } from '#tokens/rank-table.ts'
import type { Encoding } from '#tokens/ranks.ts'

type CountInput = { encoding: Encoding; ranks: RankTable; texts: string[] }

/** The entry of our worker threads: computations that would hold up the event loop. */
serveThread({
  countTexts({ encoding, ranks, texts }: CountInput, isCancelled) {
    useRanks(encoding, ranks)
    return countTexts(encoding, texts, () => {
      if (isCancelled()) throw new Error('The caller no longer waits for this count.')
      return undefined
    })
  },
  ...createPatternJobs(loadPatternEngine()),
})
