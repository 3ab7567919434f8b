import { setTimeout as sleep } from 'node:timers/promises'

import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { reconcile } from './reconcile.ts'

type Deps = { db: Db; now: Clock; log: Log; metrics: Metrics }

/** Not at once, so that starting many processes does not load the database. */
const firstMs = 30_000
const everyMs = 60 * 60 * 1000
const afterFailureMs = 60_000

/**
 * Compares the balances with the ledger once an hour, until `signal` aborts. It only reads, so several
 * workers do no harm; each sets its own gauge.
 */
export async function reconcileHourly(deps: Deps, signal: AbortSignal) {
  let waitMs = firstMs
  while (await hasPassed(waitMs, signal)) {
    waitMs = (await reconcileOnce(deps, signal)) ? everyMs : afterFailureMs
  }
}

const hasPassed = (ms: number, signal: AbortSignal) =>
  sleep(ms, true, { signal }).catch(() => false)

/** Logs every difference in the report. Returns false if it failed. */
export async function reconcileOnce(
  { db, now, log, metrics }: Deps,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const onFailure = (error: unknown) => log.problem('ledger_check_failed', error)
    const report = await reconcile(db, { signal, onFailure })
    const { organizations, entries, differenceCount, differences, unread } = report
    for (const { organizationId, what, of, expected, found } of differences) {
      const subject = `${organizationId}: ${what} ${of ?? ''}`.trim()
      log.problem('ledger_differs', new Error(`${subject}: expected ${expected}, found ${found}`))
    }
    const known = (await metrics.ledgerDifferences.get()).values[0]?.value ?? 0
    // Differences of organizations that were not read may still be there.
    metrics.ledgerDifferences.set(unread > 0 ? Math.max(known, differenceCount) : differenceCount)
    log.event('ledger_checked', { organizations, entries, differences: differenceCount, unread })
    if (unread === 0) metrics.ledgerCheckedAt.set(now().getTime() / 1000)
    return true
  } catch (error) {
    if (!signal.aborted) log.problem('ledger_check_failed', error)
    return false
  }
}
