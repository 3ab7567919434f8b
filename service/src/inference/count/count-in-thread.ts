import type { ThreadPool } from '#platform/thread-pool.ts'
import { loadRanks } from '#tokens/ranks.ts'

import type { CountInThread, Patience } from './count-turn.ts'

/**
 * How long a count may take. Every call waits for the count of its input, and can go on with a high estimate: a second is
 * enough for 8 MB of prose, and only texts that are made to be slow take longer. The other counts are answers to callers,
 * or charged to them. They get longer, and as long to wait as to run: a count that is next in turn is never refused.
 */
const patience = {
  short: { waitMs: 250, runMs: 1000 },
  long: { waitMs: 5000, runMs: 5000 },
} as const satisfies Record<Patience, unknown>

/** Counts texts in a worker thread (`thread.ts`). */
export function createThreadCounter(threads: ThreadPool): CountInThread {
  return async (encoding, texts, { owner, cancellation, patience: kind }) => {
    const ranks = await loadRanks(encoding)
    const terms = { owner, signal: cancellation.signal, ...patience[kind] }
    return (await threads.run('countTexts', { encoding, ranks, texts }, terms)) as number[]
  }
}
