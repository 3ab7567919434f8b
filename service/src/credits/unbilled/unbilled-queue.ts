import { createLockedAccounts, createWaiting } from '#credits/holds/batch-queues.ts'
import { createRetryingBatches } from '#credits/holds/retrying-batches.ts'
import type { CallQueue, Settlement } from '#credits/settlement.ts'
import type { Db } from '#platform/database.ts'

import { recordCalls } from './unbilled-store.ts'

/**
 * BILLING=off: stands where the queue of holds does, holds nothing, and charges nothing. Of a settlement only the call's event
 * and the day sums are written, by the same batches and retries.
 */
export function createUnbilledQueue({ db }: { db: Db }): CallQueue {
  const push = createRetryingBatches<Settlement, true>({
    run: (settlements) => recordCalls(db, settlements),
    // No account is ever locked here. After a lock timeout on the day sums each organization is tried by itself.
    lockedAccounts: createLockedAccounts(async () => []),
  })
  return {
    reserve: async () => ({ isHeld: true }),
    settle: (settlement) =>
      new Promise((resolve, reject) => {
        const onRecorded = () => resolve({ charged: settlement.amount, posted: null })
        push(createWaiting(settlement, onRecorded, reject))
      }),
  }
}
