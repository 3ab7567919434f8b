import type { Clock } from '#platform/clock.ts'
import type { Tx } from '#platform/database.ts'
import { afterCommit } from '#platform/transaction.ts'

import { type Change, insertChange } from './change-store.ts'

/** Tells every process that something changed; commits or vanishes together with the change. */
export type AnnounceChange = (tx: Tx, change: Change) => Promise<void>

/** `hint` makes others look at once. It may be lost: their poll finds the change anyway. */
export function createAnnouncer(now: Clock, hint: () => void): AnnounceChange {
  return async (tx, change) => {
    await insertChange(tx, change, now())
    afterCommit(tx, hint)
  }
}
