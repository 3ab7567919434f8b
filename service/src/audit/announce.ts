import type { Clock } from '#platform/clock.ts'
import type { Tx } from '#platform/database.ts'
import { afterCommit } from '#platform/transaction.ts'

import { type ChangeKind, insertChange } from './change-store.ts'
import { insertEvent } from './event-store.ts'
import { resourceOf, type Revision, revisionEvent } from './event.ts'

/** `tells`: every process must learn of it, because what it remembers depends on the object. */
type Announcement = Revision & { tells?: ChangeKind }

/**
 * Says what was changed: an audit event, and a change for every process where one is needed. Both
 * commit or vanish together with the change itself.
 */
export type Announce = (tx: Tx, announcement: Announcement) => Promise<void>

/** `hint` makes others look at once. It may be lost: their poll finds the change anyway. */
export function createAnnouncer(now: Clock, hint: () => void): Announce {
  return async (tx, { tells, ...revision }) => {
    const at = now()
    await insertEvent(tx, revisionEvent(revision, at))
    if (!tells) return
    const { organizationId } = revision
    const objectId = resourceOf(revision).id
    await insertChange(tx, { organizationId, kind: tells, objectId }, at)
    // Nobody waits for a draft.
    if (tells !== 'policy_draft') afterCommit(tx, hint)
  }
}
