import {
  callKey,
  type CallRef,
  type Hold,
  type HoldResult,
  type Settlement,
  type SettleResult,
} from '#credits/settlement.ts'
import { dependencyUnavailable } from '#platform/api-error.ts'
import type { Db } from '#platform/database.ts'
import { within } from '#platform/deadline.ts'

import { findUnlockedAccounts } from './account-store.ts'
import { batchMax, createLockedAccounts } from './batch-queues.ts'
import { releaseHolds } from './release-store.ts'
import { reserveHolds } from './reserve-store.ts'
import { createRetryingBatches } from './retrying-batches.ts'
import { settleHolds } from './settle-store.ts'

// The queue of holds: how `reserve` and `settle` become SQL.
//
// Every call to a model holds credits before it is sent and settles them when it has ended. Two commits per
// call would be what limits the database first, so items that arrive while a statement runs wait and go
// into the next statement together. There is one shared queue for holds, one for settlements and one for
// releases, and each runs one statement at a time.
//
// A statement locks the accounts of all organizations in its batch. If another transaction keeps one of
// them locked, the statement fails after `holdPool.lockTimeoutMs`, and that organization gets a separate
// queue until one of its statements succeeds: it then delays only itself.
//
// A failed statement may still have been executed. That is harmless: every statement recognizes what it has
// done before (by the call's id), so it may be repeated, by this process or by another one.
//
// | Layer      | File                                   | Adds                                                    | May throw                                         |
// | ---------- | -------------------------------------- | ------------------------------------------------------- | ------------------------------------------------- |
// | credits    | create-credits.ts                      | 402 and 503; settlements that fail go to disk           | `reserve`: ApiError; `settle`: nothing            |
// | hold queue | hold-queue.ts                          | deadline; repeats undecided holds; releases unused ones | ApiError 503; Error if the id is held differently |
// | retries    | retrying-batches.ts                    | retries by kind of failure                              | the last failure; Error if there is no account    |
// | queues     | batch-queues.ts                        | the shared queue, or a separate one                     | TooManyWaiting                                    |
// | batches    | platform/batched.ts                    | one batch at a time                                     | TooManyWaiting; the reason of an aborted signal   |
// | gate       | platform/gate.ts                       | bounds the connections of separate queues               | ApiError `overloaded`                             |
// | statements | reserve-, settle- and release-store.ts | one statement for a batch                               | errors of the database                            |
// | locks      | account-store.ts                       | locks accounts in the order of their ids                | lock timeout (55P03)                              |

type Options = {
  db: Db
  /** Every hold is made, whatever the balance is. */
  isMetered?: boolean
  /** A call whose credits are not held by then is refused. */
  reserveMaxMs?: number
}

export type HoldQueue = {
  reserve(hold: Hold): Promise<HoldResult>
  settle(settlement: Settlement): Promise<SettleResult>
}

/** Each round decides at least one of the holds that an organization had in the batch of the first round. */
const roundsMax = batchMax

export function createHoldQueue(options: Options): HoldQueue {
  const { db, isMetered = false, reserveMaxMs = 1000 } = options
  const lockedAccounts = createLockedAccounts((ids) => findUnlockedAccounts(db, ids))
  const withUnknownOutcome = new WeakSet<Hold>()
  const reserve = createRetryingBatches({
    run: (holds: readonly Hold[]) =>
      runDistinct(holds, (distinct) => reserveHolds(db, distinct, isMetered)),
    lockedAccounts,
    onUnknownOutcome: (hold: Hold) => void withUnknownOutcome.add(hold),
  })
  const settle = createRetryingBatches({
    run: (settlements: readonly Settlement[]) =>
      runDistinct(settlements, (distinct) => settleHolds(db, distinct)),
    lockedAccounts,
  })
  const release = createRetryingBatches({
    run: (holds: readonly Hold[]) => runDistinct(holds, (distinct) => releaseHolds(db, distinct)),
    lockedAccounts,
  })

  async function reserveInRounds(hold: Hold, signal: AbortSignal): Promise<HoldResult> {
    for (let round = 0; round < roundsMax; round++) {
      const { verdict, available, held } = await reserve(hold, signal)
      switch (verdict) {
        case 'held':
          return { isHeld: true }
        case 'refused':
          return { isHeld: false, available, held }
        case 'other_amount':
          throw new Error(`${hold.id} is held with another amount`)
        case 'undecided':
          continue
      }
    }
    throw new Error(`${hold.id} was undecided in every round`)
  }

  /**
   * For a call that was refused with an error and is therefore never sent. If the release fails too, the
   * hold expires like any other.
   */
  async function releaseIfHeld(hold: Hold, reserving: Promise<HoldResult>) {
    const mayBeHeld = await reserving.then(
      ({ isHeld }) => isHeld,
      () => withUnknownOutcome.has(hold),
    )
    if (mayBeHeld) await release(hold).catch(() => undefined)
  }

  return {
    async reserve(hold) {
      const reserving = Promise.withResolvers<HoldResult>()
      try {
        return await within(reserveMaxMs, tooLate, (signal) => {
          reserving.resolve(reserveInRounds(hold, signal))
          return reserving.promise
        })
      } catch (error) {
        void releaseIfHeld(hold, reserving.promise)
        throw error
      }
    },
    settle: (settlement) => settle(settlement),
  }
}

const tooLate = () => dependencyUnavailable('credit ledger', new Error('the hold takes too long'))

/** Runs a batch that may hold an item twice. There is no answer for an organization without an account. */
export async function runDistinct<Item extends CallRef, Answer>(
  items: readonly Item[],
  run: (distinct: Item[]) => Promise<Map<string, Answer>>,
): Promise<(Answer | undefined)[]> {
  const distinct = new Map<string, Item>()
  for (const item of items) if (!distinct.has(callKey(item))) distinct.set(callKey(item), item)
  const answers = await run([...distinct.values()])
  return items.map((item) => answers.get(callKey(item)))
}
