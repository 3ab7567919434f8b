import { insertEvents } from '#audit/event-store.ts'
import { buildRevisionEvent, gatehouse } from '#audit/event.ts'
import type { DroppedDays } from '#audit/partitions/partition-store.ts'
import type { Tx } from '#platform/database.ts'

import { dropDeadLetters, findNotSent, type MissedEvents } from './gap-store.ts'

type Cause = 'not_sent' | 'not_replayed' | 'refused'

/**
 * Writes a `gap` event for each sink that has not received all events of these days, which are about to be dropped. The sink
 * receives that event in their place. An open replay gets one as well. Dead letters of these days can no longer be requeued, so they
 * are deleted and get an event of their own.
 */
export async function announceGaps(tx: Tx, days: DroppedDays, now: Date) {
  const gapOf = (missed: MissedEvents, cause: Cause) =>
    buildRevisionEvent(
      {
        organizationId: missed.organizationId,
        by: gatehouse,
        action: 'gap',
        before: null,
        after: { id: missed.sinkId, object: 'policy_gateway.export' },
        facts: { cause, from_seq: missed.from, to_seq: missed.to, events: missed.events },
      },
      now,
    )
  const [notSent, refused] = [await findNotSent(tx, days), await dropDeadLetters(tx, days)]
  await insertEvents(tx, [
    ...notSent.map((missed) => gapOf(missed, missed.isReplay ? 'not_replayed' : 'not_sent')),
    ...refused.map((missed) => gapOf(missed, 'refused')),
  ])
}
