import type { Subscriber } from '#audit/follow-changes.ts'
import type { ProcessFacts } from '#audit/process-store.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { SecretBox } from '#platform/secrets.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import { applyChanges } from './apply-changes.ts'
import { createUnfinished } from './compiled-versions.ts'
import { createInForce } from './in-force.ts'
import { keepOnDisk } from './keep-last-known-good.ts'
import { reportApplied } from './report-applied.ts'
import { restoreCopy } from './restore-copy.ts'

type Options = {
  db: Db
  now: Clock
  log: Log
  metrics: Metrics
  files: TrustedFiles
  engine: PatternEngine
  secretBox: SecretBox
  /** What the process says of itself in its reports. */
  processFacts: () => ProcessFacts
  hasJudge(): boolean
}

/**
 * Keeps the snapshots in force in memory, reports to the database what this process has applied, and keeps
 * a copy on disk. A process that starts serves by the copy until its first poll has succeeded.
 */
export function followPolicies({ files, ...deps }: Options) {
  const { log } = deps
  const inForce = createInForce(deps)
  const reports = reportApplied({ ...deps, inForce })
  let othersInCopy = 0
  const others = () => reports.others() ?? othersInCopy
  const areKnown = () => Number.isFinite(inForce.confirmedAtMs())
  const disk = keepOnDisk({ files, log, inForce, others })
  const unfinished = createUnfinished()
  const stopping = new AbortController()
  const restored = restoreCopy({ ...deps, files, inForce, signal: stopping.signal }).then(
    (count) => {
      othersInCopy = count ?? 0
    },
    (error: unknown) => log.problem('last_known_policies_unreadable', error),
  )
  const applying = applyChanges({
    ...deps,
    inForce,
    unfinished,
    restored,
    onApplied(applied) {
      stopping.abort() // what is left of the copy is not needed any more
      reports.onApplied(applied)
      disk.onApplied(applied)
    },
  })
  const subscriber: Subscriber = applying

  return {
    inForce,
    subscriber,
    /** False until the first poll is applied or a copy is restored: callers of organizations are refused meanwhile. */
    areKnown,
    /** How many other processes are live, as far as this one knows. */
    others,
    /**
     * Whether this process may serve by the policies it last knew, without the database: only when it is
     * the only one, because another process may have applied something newer.
     */
    canServeAlone: () => areKnown() && others() === 0,
    async stop() {
      stopping.abort()
      applying.stop()
      await restored
      await disk.stop()
      await reports.stop()
    },
  }
}
