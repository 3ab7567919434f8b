import { ageInSeconds } from '#exports/sinks/present-sink.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Metrics } from '#platform/metrics.ts'

import { readDeliveryTotals } from './delivery-totals-store.ts'

type Deps = { db: Db; now: Clock; metrics: Metrics }

/** Sets the gauges of all sinks together. They keep their values while the database is away. */
export async function measureDelivery({ db, now, metrics }: Deps) {
  const { failing, retrying, pendingEvents, oldestEventId } = await readDeliveryTotals(db)
  metrics.exportSinks.set({ state: 'error' }, failing)
  metrics.exportSinks.set({ state: 'retrying' }, retrying)
  metrics.exportPending.set(pendingEvents)
  metrics.exportLagSeconds.set(oldestEventId === null ? 0 : ageInSeconds(oldestEventId, now()))
}
