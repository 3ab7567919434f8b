import type { CallRef } from '#credits/settlement.ts'
import { ApiError } from '#platform/api-error.ts'
import { isLockTimeout } from '#platform/database.ts'
import { isStoreAway } from '#platform/to-api-error.ts'

import {
  createBatchQueues,
  type LockedAccounts,
  type RunBatch,
  type Waiting,
} from './batch-queues.ts'

type Options<Item, Answer> = {
  run: RunBatch<Item, Answer>
  lockedAccounts: LockedAccounts
}

/** How often an item is retried after each kind of failure. */
const retriesMax = { lockTimeouts: 4, lostConnections: 1, rejections: 1 }

/**
 * Queues that retry items whose statement failed. Where the database rejected the statement, any item of the batch may be
 * the cause, so each is retried in a statement of its own. `run` must be idempotent: an item that was executed already
 * changes nothing and gets the same answer. Returns the function that puts an item into its queue.
 */
export function createRetryingBatches<Item extends CallRef, Answer>(
  options: Options<Item, Answer>,
): (waiting: Waiting<Item, Answer>) => void {
  const { push, pushAlone } = createBatchQueues({ ...options, onFailure: retryOrReject })

  function retryOrReject(waiting: Waiting<Item, Answer>, error: unknown) {
    const failure = classify(error)
    const isRetried = failure !== null && ++waiting[failure] <= retriesMax[failure]
    if (waiting.isGivenUp || !isRetried) waiting.reject(error)
    else if (waiting.rejections > 0) pushAlone(waiting)
    else push(waiting)
  }
  return push
}

function classify(error: unknown): keyof typeof retriesMax | null {
  // Statements throw no ApiError: it comes from the gate of the separate queues, which are full.
  if (error instanceof ApiError) return null
  if (isLockTimeout(error)) return 'lockTimeouts'
  return isStoreAway(error) ? 'lostConnections' : 'rejections'
}
