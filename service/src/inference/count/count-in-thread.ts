import type { ThreadPool } from '#platform/thread-pool.ts'
import { loadRanks } from '#tokens/ranks.ts'

import type { CountInThread, Patience } from './count-turn.ts'

/**
 * How long a count may take. `short` is for the input of a call: every call waits for it, and can go on with a high estimate. A
 * second is enough for 8 MB of prose, so only texts that are made to be slow take longer. `long` is for counts that are answers
 * to callers or are charged to them. They may wait as long as they may run, so that the next count in line is never refused.
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
