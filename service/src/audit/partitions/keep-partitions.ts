import { type Rest, withoutRest } from '#platform/background/run-task.ts'
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

type Deps = { db: Db; log: Log; retentionDays: number; beforeDrop: BeforeDrop; rest?: Rest }

/** Makes the partitions of the log ahead of time, and drops those that are too old. */
export async function keepPartitions(deps: Deps) {
  const { db, log, retentionDays, beforeDrop, rest = withoutRest } = deps
  try {
    await makePartitions(db, daysAhead)
    for (;;) {
      const partition =
        (await dropOldPartition(db, retentionDays, beforeDrop)) ??
        (await dropOldLogPartition(db, retentionDays))
      if (partition === undefined) return
      log.event('audit_events_dropped', { partition })
      await rest()
    }
  } catch (error) {
    // A reader of the log holds a lock, or another worker does this: there is time until the next attempt.
    if (!isLockTimeout(error)) throw error
  }
}
