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
 * Keeps the snapshots in force in memory, reports to the database what this process has applied, and keeps
 * a copy on disk. A process that starts serves by the copy until its first poll has succeeded.
 */
export function followPolicies({ files, ...deps }: Options) {
  const { log, checkRule } = deps
  const inForce = createInForce(deps)
  const reports = reportApplied({ ...deps, inForce })
  let othersInCopy = 0
  const others = () => reports.others() ?? othersInCopy
  const disk = keepOnDisk({ files, log, inForce, others })
  const subscriber: Subscriber = applyChanges({
    ...deps,
    inForce,
    onApplied(applied) {
      reports.onApplied(applied)
      disk.onApplied(applied)
    },
  })

  async function restore() {
    const copy = await readLastKnownGood(files, checkRule)
    if (!copy) return
    othersInCopy = copy.others
    inForce.restore(copy)
  }
  const restored = restore().catch((error: unknown) =>
    log.problem('last_known_policies_unreadable', error),
  )

  return {
    inForce,
    subscriber,
    /** How many other processes are live, as far as this one knows. */
    others,
    /**
     * Whether this process may serve by the policies it last knew, without the database: only when it is
     * the only one, because another process may have applied something newer.
     */
    canServeAlone: () => Number.isFinite(inForce.confirmedAtMs()) && others() === 0,
    async stop() {
      await restored
      await disk.stop()
      await reports.stop()
    },
  }
}
