import type { Clock } from '#platform/clock.ts'
import type { Tx } from '#platform/database.ts'
import { afterCommit } from '#platform/transaction.ts'

import { type ChangeKind, insertChange } from './change-store.ts'
import { insertEvents } from './event-store.ts'
import { buildRevisionEvent, resourceOf, type Revision } from './event.ts'

/** `notifies`: processes cache something that depends on the resource, and have to be notified. */
type Announcement = Revision & { notifies?: ChangeKind }

/**
 * Writes the audit event of a change and, where processes have to be notified, a row of `config_change`. Both
 * commit in the transaction of the change.
 */
export type Announce = (tx: Tx, announcement: Announcement) => Promise<void>

/** `hint` makes other processes poll at once. It may be lost: their next poll finds the change anyway. */
export function createAnnouncer(now: Clock, hint: () => void): Announce {
  return async (tx, { notifies, ...revision }) => {
    const at = now()
    await insertEvents(tx, [buildRevisionEvent(revision, at)])
    if (!notifies) return
    const { organizationId } = revision
    const objectId = resourceOf(revision).id
    await insertChange(tx, { organizationId, kind: notifies, objectId }, at)
    // A draft is not in force: the next poll is early enough.
    if (notifies !== 'policy_draft') afterCommit(tx, hint)
  }
}
