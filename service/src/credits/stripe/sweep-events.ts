import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import { transact } from '#platform/transaction.ts'

import { removeOldEvents } from './event-store.ts'

/** Named at a time; of the others, how many there were. */
const namedMax = 100

/**
 * Removes a bounded number of old events; returns how many. Nobody will know any more whose payment or
 * refund it was that still waited, so each is named once.
 */
export async function sweepPaymentEvents(
  { db, log }: { db: Db; log: Log },
  before: Date,
  limit: number,
): Promise<number> {
  const { events, refunds } = await transact(db, (tx) => removeOldEvents(tx, before, limit))
  const lost = [
    ...events.filter(({ state }) => state === 'waiting').map(({ id, type }) => `${type} ${id}`),
    ...refunds.map(({ charge }) => `the refund of ${charge}`),
  ]
  for (const each of lost.slice(0, namedMax)) {
    log.problem('a payment event was never counted and is dropped', new Error(each))
  }
  const others = lost.length - namedMax
  if (others > 0) {
    log.problem('payment events were never counted and are dropped', new Error(`${others} more`))
  }
  return Math.max(events.length, refunds.length)
}
