import { randomUUID } from 'node:crypto'

import { forgetProcess, reportProcess } from '#audit/process-store.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'

import type { Applied } from './apply-changes.ts'
import type { InForce } from './in-force.ts'

type Options = { db: Db; now: Clock; log: Log; inForce: Pick<InForce, 'failures'> }

const reportEveryMs = 4000
const failuresMax = 1000

/**
 * Tells the others what this process has applied: at once after every change of policies, else every few
 * seconds with the polls, so that who does not poll any more falls silent.
 */
export function reportApplied({ db, now, log, inForce }: Options) {
  const id = randomUUID()
  const startedAt = now()
  let others: number | undefined
  let reportedAtMs = -Infinity
  let waiting: Applied | undefined
  let running: Promise<void> | undefined
  let isStopped = false

  async function reportAll() {
    while (waiting) {
      const isTooMuch = inForce.failures.size > failuresMax
      // Where not all failures can be told, nothing is said to be applied.
      const applied = isTooMuch ? null : waiting.poll.snapshot
      const failures = isTooMuch ? new Map<string, number>() : inForce.failures
      waiting = undefined
      try {
        others = await reportProcess(db, { id, startedAt, applied, failures })
        reportedAtMs = performance.now()
      } catch (error) {
        log.problem('reporting what is applied', error)
      }
    }
  }

  return {
    onApplied(applied: Applied) {
      const isDue = performance.now() - reportedAtMs > reportEveryMs
      if (isStopped || (!applied.hasNews && !isDue && !waiting)) return
      waiting = applied
      running ??= reportAll().finally(() => (running = undefined))
    },
    /** How many other processes lived at the last report; undefined before the first. */
    others: () => others,
    async stop() {
      isStopped = true
      await running
      await forgetProcess(db, id).catch(() => undefined) // it will be missed for some minutes
    },
  }
}
