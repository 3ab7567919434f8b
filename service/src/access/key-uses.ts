import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'

import { type KeyUse, writeKeyUses } from './credential-store.ts'

const flushMs = 30_000
const batchMax = 1000
/** Uses of further keys are dropped: `last_used_at` is informative. */
const usesMax = 100_000

/**
 * Collects when each key was last used and writes it every 30 seconds, so that a busy key costs one row
 * update instead of one per request. A crash loses what was not written yet.
 */
export function createKeyUses(db: Db, log: Log) {
  const uses = new Map<string, KeyUse>()

  function note(use: KeyUse) {
    const known = uses.get(use.keyId)
    if (known ? known.usedAt < use.usedAt : uses.size < usesMax) uses.set(use.keyId, use)
  }

  async function flush() {
    const pending = [...uses.values()]
    uses.clear()
    for (let start = 0; start < pending.length; start += batchMax) {
      await writeKeyUses(db, pending.slice(start, start + batchMax)).catch((error: unknown) => {
        // The next flush retries what this one could not write.
        for (const use of pending.slice(start)) note(use)
        throw error
      })
    }
  }
  const flushOrLog = () =>
    flush().catch((error: unknown) => log.problem('key_uses_not_written', error))

  const timer = setInterval(() => void flushOrLog(), flushMs).unref()
  return {
    note,
    async stop() {
      clearInterval(timer)
      await flushOrLog()
    },
  }
}
export type KeyUses = ReturnType<typeof createKeyUses>
