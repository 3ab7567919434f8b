import type { CallRef } from '#credits/settlement.ts'
import { ApiError } from '#platform/api-error.ts'
import { TooManyWaiting } from '#platform/batched.ts'
import { isLockTimeout } from '#platform/database.ts'
import { isStoreAway } from '#platform/to-api-error.ts'

import { createBatchQueues, type LockedAccounts, type RunBatch } from './batch-queues.ts'

type Options<Item, Answer> = {
  run: RunBatch<Item, Answer | undefined>
  lockedAccounts: LockedAccounts
  /** Called when the connection breaks during a statement: the database may or may not have executed it. */
  onUnknownOutcome?: (item: Item) => void
}

/** How often an item is retried after each kind of failure. */
const retriesMax = { queueFull: 0, accountLocked: 4, databaseAway: 1, rejected: 1 }
type Failure = keyof typeof retriesMax

/**
 * Retries items whose batch failed. Where the database rejected the statement, any item of the batch may be
 * the cause, so each is retried in a statement of its own. `run` must be idempotent: an item that was executed already
 * changes nothing and gets the same answer.
 */
export function createRetryingBatches<Item extends CallRef, Answer>(
  options: Options<Item, Answer>,
) {
  const { run, lockedAccounts, onUnknownOutcome } = options
  const { runBatched, runAlone } = createBatchQueues(run, lockedAccounts)

  async function runWithRetries(item: Item, signal?: AbortSignal) {
    const failures = { queueFull: 0, accountLocked: 0, databaseAway: 0, rejected: 0 }
    let mayOverlapLostAttempt = false
    for (;;) {
      try {
        const answer = await (failures.rejected > 0 ? runAlone : runBatched)(item, signal)
        if (!mayOverlapLostAttempt) return answer
        // The attempt whose connection broke may have been running when this one took its snapshot: this
        // one then saw the account with the lost attempt's hold, but not the hold itself, and was refused
        // for want of credits. Both take the account's lock, so the lost attempt has ended by now.
        mayOverlapLostAttempt = false
      } catch (error) {
        const failure = classify(error)
        if (failure === 'databaseAway') {
          mayOverlapLostAttempt = true
          onUnknownOutcome?.(item)
        }
        failures[failure]++
        if (signal?.aborted || failures[failure] > retriesMax[failure]) throw error
      }
    }
  }

  return async (item: Item, signal?: AbortSignal): Promise<Answer> => {
    const answer = await runWithRetries(item, signal)
    if (answer === undefined) throw new Error(`${item.organizationId} has no credit account`)
    return answer
  }
}

function classify(error: unknown): Failure {
  // Statements throw no ApiError: it comes from the gate of the separate queues, or from the caller's signal.
  if (error instanceof TooManyWaiting || error instanceof ApiError) return 'queueFull'
  if (isLockTimeout(error)) return 'accountLocked'
  return isStoreAway(error) ? 'databaseAway' : 'rejected'
}
