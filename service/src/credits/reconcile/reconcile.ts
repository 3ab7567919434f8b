import type { Db } from '#platform/database.ts'

import { checkInOneSnapshot } from './check-whole.ts'
import { type ProofOutcome, saveOutcomes } from './point-store.ts'
import { listOrganizationIds } from './reconcile-store.ts'
import { createReport, type Report } from './report.ts'

export type ReconcileOptions = {
  /** Checks only this organization. */
  organizationId?: string
  signal?: AbortSignal
  differencesMax?: number
  pageRows?: number
  /** Called if an organization cannot be read. Without it, `reconcile` throws. */
  onFailure?: (error: unknown) => void
}

const rethrow = (error: unknown) => {
  throw error
}

const organizationsPerPage = 100

/**
 * Adds up whole ledgers and compares the sums with the stored balances and day sums; computes every charge again from the `meta` of its
 * entry. It does not use the points of earlier checks, and leaves new ones for the hourly check: where something differs, that one
 * checks the whole ledger too, until nothing does.
 */
export async function reconcile(db: Db, options: ReconcileOptions = {}): Promise<Report> {
  const { organizationId, signal, pageRows = 1000 } = options
  const { onFailure = rethrow } = options
  const progress = createReport(options)
  const pages = organizationId === undefined ? listAllOrganizations(db) : [[organizationId]]
  for await (const ids of pages) {
    const outcomes: ProofOutcome[] = []
    for (const id of ids) {
      signal?.throwIfAborted()
      const check = { organizationId: id, pageRows, signal, onFailure }
      const outcome = await checkInOneSnapshot(db, progress, check)
      if (outcome) outcomes.push(outcome)
      progress.report.organizations++
    }
    await saveOutcomes(db, outcomes)
  }
  return progress.report
}

async function* listAllOrganizations(db: Db): AsyncGenerator<string[]> {
  for (let after = ''; ;) {
    const ids = await listOrganizationIds(db, after, organizationsPerPage)
    const last = ids.at(-1)
    if (last === undefined) return
    yield ids
    after = last
  }
}
