import type { Rest } from '#platform/background/run-task.ts'
import type { Db } from '#platform/database.ts'

import {
  type LedgerCheck,
  checkPages,
  eachInItsOwn,
  type InSnapshot,
} from './check-organization.ts'
import type { ProofOutcome } from './point-store.ts'
import { readStoredBalance, withSnapshot } from './reconcile-store.ts'
import type { ReportInProgress } from './report.ts'
import { compareHolds } from './sum-ledger.ts'

type OnFailure = (error: unknown) => void

/** For the operator's command: the whole ledger and the holds of an organization, in one snapshot. Undefined if it could not be read. */
export const checkInOneSnapshot = (
  db: Db,
  progress: ReportInProgress,
  check: LedgerCheck & { onFailure: OnFailure },
): Promise<ProofOutcome | undefined> =>
  unlessUnreadable(progress, check, () =>
    withSnapshot(db, async (tx) => {
      const { organizationId } = check
      const outcome = await readWhole((read) => read(tx), progress, check)
      const stored = await readStoredBalance(tx, organizationId)
      if (stored) progress.addFindings(organizationId, compareHolds(stored))
      return outcome
    }),
  )

/**
 * For the hourly check: the whole ledger of an organization, page by page. It may take hours, so it must not keep a snapshot open.
 * Undefined if the ledger could not be read to its end and nothing differed as far as it was.
 */
export const checkInManySnapshots = (
  db: Db,
  progress: ReportInProgress,
  check: LedgerCheck & { onFailure: OnFailure; rest: Rest },
): Promise<ProofOutcome | undefined> =>
  unlessUnreadable(progress, check, () =>
    readWhole(eachInItsOwn(db), progress, check, () => check.rest()),
  )

async function readWhole(
  inSnapshot: InSnapshot,
  { report, addFindings, addPostponed }: ReportInProgress,
  check: LedgerCheck,
  rest?: Rest,
): Promise<ProofOutcome | undefined> {
  const { organizationId } = check
  let differs = false
  for await (const page of checkPages(inSnapshot, { ...check, from: 'beginning' })) {
    const { entries, findings, point, isLast, version } = page
    report.entries += entries
    differs ||= findings.length > 0
    addFindings(organizationId, findings)
    if (isLast) return { organizationId, point, differs, version }
    await rest?.()
  }
  addPostponed()
  return differs ? { organizationId, point: undefined, differs, version: undefined } : undefined
}

async function unlessUnreadable(
  { addUnread }: ReportInProgress,
  { signal, onFailure }: { signal: AbortSignal | undefined; onFailure: OnFailure },
  check: () => Promise<ProofOutcome | undefined>,
): Promise<ProofOutcome | undefined> {
  try {
    return await check()
  } catch (error) {
    signal?.throwIfAborted()
    addUnread(error, onFailure)
    return undefined
  }
}
