import type { CallRef, Hold, HoldResult, Settlement, SettleResult } from '#credits/settlement.ts'
import { dependencyUnavailable } from '#platform/api-error.ts'
import type { Db } from '#platform/database.ts'
import { createDeadlines } from '#platform/deadline.ts'

import { findUnlockedAccounts } from './account-store.ts'
import { createLockedAccounts, createWaiting } from './batch-queues.ts'
import type { CreditMove, Moved } from './credit-move.ts'
import { moveCredits } from './move-store.ts'
import { createRetryingBatches } from './retrying-batches.ts'

// How `reserve` and `settle` become SQL.
//
// Every call to a model holds credits before it is sent and settles them when it has ended. Two commits per
// call would be what limits the database first. So there is one queue, and one statement at a time: holds,
// settlements and releases that arrive while it runs go into the next one together (platform/batched.ts).
// The statement is a call of a function of the database: it locks the accounts of the batch in the order of
// their ids, settles, releases and holds in this order, each item by itself, and writes ledger entries, day sums
// and audit events. One commit makes all of it true. `move_credits` (migrations/0014) decides about each item in a
// loop. `move_credits_by_sets` (migrations/0031) has the same effect for a batch without a special case, with less
// work, and calls `move_credits` for any other.
//
// An item in the queue is one object with two callbacks (`Waiting`), and stays that object until it is
// answered. What can happen to it instead of an answer:
//
// - The account is locked by another transaction: the statement fails after `holdPool.lockTimeoutMs`, and that
//   organization gets a separate queue until one of its statements succeeds: it delays only itself
//   (batch-queues.ts).
// - The statement fails otherwise: the item is put into a queue again, as often as its kind of failure allows
//   (retrying-batches.ts). The database may have executed a statement whose answer was lost. That is harmless:
//   an item that was executed before is recognized by the id of its call, and nothing is done twice.
// - A hold takes longer than `reserveMaxMs`: the call is refused with 503 (platform/deadline.ts). Such a hold is not
//   started any more; if it turns out to be made, or its outcome is never learned, it is released. If the
//   release fails too, the hold expires like any other.
// - The queue is full: TooManyWaiting, which is 529 for a hold. A settlement then goes to disk, as after
//   every other failure (create-credits.ts).

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

export function createHoldQueue(options: Options): HoldQueue {
  const { db, isMetered = false, reserveMaxMs = 1000 } = options
  const deadlines = createDeadlines(reserveMaxMs)
  const push = createRetryingBatches<CreditMove, Moved>({
    run: (moves) => moveCredits(db, moves, isMetered),
    lockedAccounts: createLockedAccounts((ids) => findUnlockedAccounts(db, ids)),
  })

  /** For a call that is never sent. */
  const release = (hold: Hold) => push(createWaiting(moveOf('release', hold), ignore, ignore))

  return {
    reserve: (hold) =>
      new Promise((resolve, reject) => {
        const onAnswer = (moved: Moved) => {
          deadlines.takeBack(deadline)
          if (!waiting.isGivenUp) resolveHold(hold, moved, resolve, reject)
          else if (moved.outcome === 'held') release(hold)
        }
        const onFailure = (error: unknown) => {
          deadlines.takeBack(deadline)
          if (waiting.lostConnections > 0) release(hold)
          reject(error)
        }
        const waiting = createWaiting(moveOf('hold', hold), onAnswer, onFailure)
        const deadline = deadlines.set(() => {
          waiting.isGivenUp = true
          reject(tooLate())
        })
        push(waiting)
      }),
    settle: (settlement) =>
      new Promise((resolve, reject) => {
        const { organizationId, id } = settlement
        const onAnswer = ({ outcome, amount, rest }: Moved) => {
          if (outcome === 'no_account') reject(noAccount(settlement))
          else resolve({ charged: amount, posted: rest })
        }
        const move = { kind: 'settle', organizationId, id, call: settlement } as const
        push(createWaiting(move, onAnswer, reject))
      }),
  }
}

const moveOf = (kind: 'hold' | 'release', call: Hold): CreditMove => ({
  kind,
  organizationId: call.organizationId,
  id: call.id,
  call,
})

function resolveHold(
  hold: Hold,
  { outcome, amount, rest }: Moved,
  resolve: (result: HoldResult) => void,
  reject: (error: Error) => void,
) {
  if (outcome === 'held') resolve({ isHeld: true })
  else if (outcome === 'refused') resolve({ isHeld: false, available: amount, held: rest })
  else if (outcome === 'other_amount') reject(new Error(`${hold.id} is held with another amount`))
  else reject(noAccount(hold))
}

const noAccount = ({ organizationId }: CallRef) =>
  new Error(`${organizationId} has no credit account`)

const tooLate = () => dependencyUnavailable('credit ledger', new Error('the hold takes too long'))

const ignore = () => undefined
