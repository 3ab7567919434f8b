import { type Db, isLockTimeout } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'

import {
  type BeforeDrop,
  dropOldLogPartition,
  dropOldPartition,
  makePartitions,
} from './partition-store.ts'

/** So long may the worker be away before events are written to the default partition. */
const daysAhead = 7

type Deps = { db: Db; log: Log; retentionDays: number; beforeDrop: BeforeDrop }

/** Makes the partitions of the log ahead of time, and drops those that are too old. */
export async function keepPartitions({ db, log, retentionDays, beforeDrop }: Deps) {
  try {
    await makePartitions(db, daysAhead)
    for (;;) {
      const partition =
        (await dropOldPartition(db, retentionDays, beforeDrop)) ??
        (await dropOldLogPartition(db, retentionDays))
      if (partition === undefined) return
      log.event('audit_events_dropped', { partition })
    }
  } catch (error) {
    // Somebody reads the log, or another worker does this: there is time until the next attempt.
    if (!isLockTimeout(error)) log.problem('event_partitions_failed', error)
  }
}
