import type { ThreadPool } from '#platform/thread-pool.ts'

import type { CountInThread } from './count-turn.ts'

/** Counts texts in a worker thread (`thread.ts`). */
export function createThreadCounter(threads: ThreadPool): CountInThread {
  return async (encoding, texts, signal) => {
    const counts = await threads.run('countTexts', { encoding, texts }, signal)
    return counts as number[]
  }
}
