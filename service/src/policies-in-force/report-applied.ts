import { randomUUID } from 'node:crypto'

import { forgetProcess, type ProcessFacts, reportProcess } from '#audit/process-store.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'

import type { AppliedPoll } from './apply-changes.ts'
import type { InForce } from './in-force.ts'

type Options = {
  db: Db
  now: Clock
  log: Log
  inForce: Pick<InForce, 'failures'>
  processFacts: () => ProcessFacts
}

const reportEveryMs = 4000
const failuresMax = 1000

/**
 * Reports to the database what this process has applied: at once after every change of policies, otherwise
 * every four seconds. A report needs a poll, so a process that no longer polls becomes silent.
 */
export function reportApplied({ db, now, log, inForce, processFacts }: Options) {
  const id = randomUUID()
  const startedAt = now()
  let others: number | undefined
  let reportedAtMs = -Infinity
  let unreported: AppliedPoll | undefined
  let running: Promise<void> | undefined
  let isStopped = false

  async function reportAll() {
    while (unreported) {
      // A report that cannot list all failures must not claim that anything is applied.
      const hasTooManyFailures = inForce.failures.size > failuresMax
      const applied = hasTooManyFailures ? null : unreported.poll.snapshot
      const failures = hasTooManyFailures ? new Map<string, number>() : inForce.failures
      unreported = undefined
      try {
        others = await reportProcess(db, {
          id,
          startedAt,
          applied,
          failures,
          facts: processFacts(),
        })
        reportedAtMs = performance.now()
      } catch (error) {
        log.problem('applied_policies_not_reported', error)
      }
    }
  }

  return {
    onApplied(applied: AppliedPoll) {
      const isDue = performance.now() - reportedAtMs > reportEveryMs
      if (isStopped || (!applied.hasChanges && !isDue && !unreported)) return
      unreported = applied
      running ??= reportAll().finally(() => (running = undefined))
    },
    /** How many other processes were live at the last report; undefined before the first. */
    others: () => others,
    async stop() {
      isStopped = true
      await running
      await forgetProcess(db, id).catch(() => undefined) // counts as silent for ten minutes then
    },
  }
}
