import { createLockedAccounts } from '#credits/holds/batch-queues.ts'
import { runDistinct } from '#credits/holds/hold-queue.ts'
import { createRetryingBatches } from '#credits/holds/retrying-batches.ts'
import type { CallQueue, Settlement } from '#credits/settlement.ts'
import type { Db } from '#platform/database.ts'

import { recordCalls } from './unbilled-store.ts'

/**
 * BILLING=off: stands where the queue of holds does, holds nothing, and charges nothing. Of a settlement only the call's event
 * and the day sums are written, by the same batches and retries.
 */
export function createUnbilledQueue({ db }: { db: Db }): CallQueue {
  const record = createRetryingBatches({
    run: (settlements: readonly Settlement[]) =>
      runDistinct(settlements, (distinct) => recordCalls(db, distinct)),
    // No account is ever locked here. After a lock timeout on the day sums each organization is tried by itself.
    lockedAccounts: createLockedAccounts(async () => []),
  })
  return {
    reserve: async () => ({ isHeld: true }),
    async settle(settlement) {
      await record(settlement)
      return { charged: settlement.amount, posted: null }
    },
  }
}
