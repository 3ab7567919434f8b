import type { ThreadPool } from '#platform/thread-pool.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

/** A search that takes longer is given up, and the call is refused: an accepted pattern needs seconds only for megabytes. */
const terms = { waitMs: 5000, runMs: 5000 }

/** The engine, with worker threads (`thread.ts`) for searches that would hold the event loop. */
export function withThreads(engine: PatternEngine, threads: ThreadPool): PatternEngine {
  return {
    ...engine,
    async searchElsewhere(patterns, text, { owner, signal }) {
      const search = { patterns, text }
      const found = await threads.run('searchPatterns', search, { ...terms, owner, signal })
      return found as readonly number[]
    },
  }
}
