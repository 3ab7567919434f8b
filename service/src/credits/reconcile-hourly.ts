import { setTimeout as sleep } from 'node:timers/promises'

import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { reconcile } from './reconcile.ts'

type Tools = { db: Db; now: Clock; log: Log; metrics: Metrics }

/** Not at once: whoever starts many processes should not find the database busy with this. */
const firstMs = 30_000
const everyMs = 60 * 60 * 1000
const afterFailureMs = 60_000

/**
 * Looks once an hour whether all money is where the ledger says, until `signal` ends it. It only reads, so
 * several workers do no harm, and each one's gauge is what it found itself.
 */
export async function reconcileHourly(tools: Tools, signal: AbortSignal) {
  let waitMs = firstMs
  while (await hasPassed(waitMs, signal)) {
    waitMs = (await reconcileOnce(tools, signal)) ? everyMs : afterFailureMs
  }
}

const hasPassed = (ms: number, signal: AbortSignal) =>
  sleep(ms, true, { signal }).catch(() => false)

/** Tells every difference it lists; returns false when it could not look to the end. */
export async function reconcileOnce(
  { db, now, log, metrics }: Tools,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const onFailure = (error: unknown) => log.problem('checking the ledger', error)
    const report = await reconcile(db, { signal, onFailure })
    const { organizations, entries, differenceCount, differences, unread } = report
    for (const { organizationId, what, of, expected, found } of differences) {
      log.problem(`${organizationId}: ${what} ${of ?? ''}`.trim(), differs(expected, found))
    }
    const known = (await metrics.ledgerDifferences.get()).values[0]?.value ?? 0
    // What was not read may still differ.
    metrics.ledgerDifferences.set(unread > 0 ? Math.max(known, differenceCount) : differenceCount)
    log.event('ledger_checked', { organizations, entries, differences: differenceCount, unread })
    if (unread === 0) metrics.ledgerCheckedAt.set(now().getTime() / 1000)
    return true
  } catch (error) {
    if (!signal.aborted) log.problem('checking the ledger', error)
    return false
  }
}

const differs = (expected: string, found: string) =>
  new Error(`the ledger differs: expected ${expected}, found ${found}`)
