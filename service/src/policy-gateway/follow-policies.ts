import type { Subscriber } from '#audit/follow-changes.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'
import type { RuleCheck } from '#policies/rule.ts'

import { applyChanges } from './apply-changes.ts'
import { createInForce } from './in-force.ts'
import { keepOnDisk } from './keep-last-known-good.ts'
import { readLastKnownGood } from './last-known-good.ts'
import { reportApplied } from './report-applied.ts'

type Options = {
  db: Db
  now: Clock
  log: Log
  metrics: Metrics
  files: TrustedFiles
  checkRule: RuleCheck
}

/**
 * Keeps what is in force in memory, tells the others what was applied here, and keeps a copy on disk.
 * The copy serves from the start until the database has been heard.
 */
export function followPolicies({ files, ...tools }: Options) {
  const { log, checkRule } = tools
  const inForce = createInForce(tools)
  const reports = reportApplied({ ...tools, inForce })
  let othersBefore = 0
  const others = () => reports.others() ?? othersBefore
  const disk = keepOnDisk({ files, log, inForce, others })
  const subscriber: Subscriber = applyChanges({
    ...{ ...tools, inForce },
    onApplied(applied) {
      reports.onApplied(applied)
      disk.onApplied(applied)
    },
  })

  async function recall() {
    const kept = await readLastKnownGood(files, checkRule)
    if (!kept) return
    othersBefore = kept.others
    inForce.recall(kept)
  }
  const recalled = recall().catch((error: unknown) =>
    log.problem('reading the last known policies', error),
  )

  return {
    inForce,
    subscriber,
    /** How many other processes live, as far as this one knows. */
    others,
    /**
     * Nobody else could serve better: alone, a process goes on with what it last knew. Others may know
     * more, so with them it should rather get no traffic.
     */
    canServeAlone: () => Number.isFinite(inForce.confirmedAtMs()) && others() === 0,
    async stop() {
      await recalled
      await disk.stop()
      await reports.stop()
    },
  }
}
