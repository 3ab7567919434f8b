import type { ThreadPool } from '#platform/thread-pool.ts'

import type { CountElsewhere } from './count-turn.ts'

/** Has texts counted by a thread (`thread.ts`). */
export function countInThreads(threads: ThreadPool): CountElsewhere {
  return async (encoding, texts, signal) => {
    const counts = await threads.run('countTexts', { encoding, texts }, signal)
    return counts as number[]
  }
}
