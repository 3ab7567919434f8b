import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import { transact } from '#platform/transaction.ts'

import { removeOldEvents } from './event-store.ts'

/** More lost events than this are only counted in the log. */
const loggedMax = 100

/**
 * Removes a bounded number of old events; returns how many. An event that still waits for its organization or
 * payment was never counted, so it is logged.
 */
export async function sweepPaymentEvents(
  { db, log }: { db: Db; log: Log },
  before: Date,
  limit: number,
): Promise<number> {
  const { events, charges } = await transact(db, (tx) => removeOldEvents(tx, before, limit))
  const lost = [
    ...events.filter(({ state }) => state === 'waiting').map(({ id, type }) => `${type} ${id}`),
    ...charges.map(({ charge }) => `the refund or dispute of ${charge}`),
  ]
  for (const each of lost.slice(0, loggedMax)) {
    log.problem('uncounted_payment_event_dropped', new Error(each))
  }
  const others = lost.length - loggedMax
  if (others > 0) {
    log.problem('uncounted_payment_events_dropped', new Error(`${others} more`))
  }
  return Math.max(events.length, charges.length)
}
