import type { TaskTurn } from '#platform/background/run-task.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { checkNews } from './check-news.ts'
import type { Difference } from './sum-ledger.ts'

type Deps = { db: Db; now: Clock; log: Log; metrics: Metrics }

/**
 * Checks what has come since the last check (`check-news.ts`). Differences are logged and counted as soon as they are found: a check
 * may take long. Several workers do no harm: they share the points of what was proven, and each sets its own gauges.
 */
export async function reconcileOnce({ db, now, log, metrics }: Deps, { signal, rest }: TaskTurn) {
  const known = (await metrics.ledgerDifferences.get()).values[0]?.value ?? 0
  const report = await checkNews(db, {
    signal,
    rest,
    onFailure: (error) => log.problem('ledger_check_failed', error),
    onDifferences(differences, count) {
      for (const each of differences) log.problem('ledger_differs', new Error(describe(each)))
      metrics.ledgerDifferences.set(Math.max(known, count))
    },
  })
  const { organizations, entries, differenceCount, unread, postponed } = report
  const isComplete = unread === 0 && postponed === 0
  // Differences of organizations that were not read to their end may still be there.
  metrics.ledgerDifferences.set(isComplete ? differenceCount : Math.max(known, differenceCount))
  const differences = differenceCount
  log.event('ledger_checked', { organizations, entries, differences, unread, postponed })
  if (isComplete) metrics.ledgerCheckedAt.set(now().getTime() / 1000)
}

const describe = ({ organizationId, what, of, expected, found }: Difference) =>
  `${`${organizationId}: ${what} ${of ?? ''}`.trim()}: expected ${expected}, found ${found}`
