import type { LedgerPosition } from '#credits/ledger-store.ts'
import type { Db, Tx } from '#platform/database.ts'

import {
  type CheckedEntry,
  listOrganizationIds,
  readEntries,
  readStoredBalance,
  readUsageDays,
  withSnapshot,
} from './reconcile-store.ts'
import {
  afterAllDays,
  beforeAllDays,
  createDaySums,
  createLedgerSums,
  dayOf,
  type Difference,
  type Finding,
} from './sum-ledger.ts'

export type Report = {
  organizations: number
  entries: number
  /** All differences; only the first of them are in `differences`. */
  differenceCount: number
  differences: Difference[]
  /** How many organizations could not be read. */
  unread: number
}

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
/** After this many unreadable organizations the database itself must be at fault. */
const unreadMax = 10

/**
 * Adds up the ledger and compares the sums with the stored balances and day sums; computes every charge again
 * from the `meta` of its entry.
 *
 * Calls go on meanwhile: each organization is read in one transaction with one snapshot and without locks.
 * Only one page of its ledger is in memory at a time, with the sums of the days on it.
 */
export async function reconcile(db: Db, options: ReconcileOptions = {}): Promise<Report> {
  const { organizationId, signal, differencesMax = 100, pageRows = 1000 } = options
  const { onFailure = rethrow } = options
  const report: Report = {
    organizations: 0,
    entries: 0,
    differenceCount: 0,
    differences: [],
    unread: 0,
  }
  /** An organization that cannot be read must not keep the others from being checked. */
  const onUnread = (error: unknown) => {
    signal?.throwIfAborted()
    if (report.unread >= unreadMax) throw error
    onFailure(error)
    return undefined
  }
  const ids = organizationId === undefined ? listAllOrganizations(db) : [organizationId]
  for await (const id of ids) {
    signal?.throwIfAborted()
    const addFindings = (findings: readonly Finding[]) => {
      report.differenceCount += findings.length
      const room = Math.max(0, differencesMax - report.differences.length)
      const listed = findings.slice(0, room).map((each) => ({ organizationId: id, ...each }))
      report.differences.push(...listed)
    }
    const check = { organizationId: id, pageRows, addFindings, signal }
    const entries = await withSnapshot(db, (tx) => checkOrganization(tx, check)).catch(onUnread)
    if (entries === undefined) report.unread++
    else report.entries += entries
    report.organizations++
  }
  return report
}

async function* listAllOrganizations(db: Db): AsyncGenerator<string> {
  let after = ''
  for (;;) {
    const ids = await listOrganizationIds(db, after, organizationsPerPage)
    yield* ids
    const last = ids.at(-1)
    if (last === undefined) return
    after = last
  }
}

type Check = {
  organizationId: string
  pageRows: number
  addFindings: (findings: readonly Finding[]) => void
  signal: AbortSignal | undefined
}

/** Returns how many entries it has checked. */
async function checkOrganization(tx: Tx, check: Check): Promise<number> {
  const { organizationId, addFindings } = check
  const ledgerSums = createLedgerSums()
  const daySums = createDaySums()
  let openDay = beforeAllDays
  let entries = 0
  /** Entries come in the order of time: all days before that of the last entry are complete. */
  const closeDays = async (before: string) => {
    if (before === openDay) return
    const rows = await readUsageDays(tx, organizationId, openDay, before)
    addFindings(daySums.compare(rows, before))
    openDay = before
  }
  const stored = await readStoredBalance(tx, organizationId)
  for await (const page of listAllPages(tx, check)) {
    for (const entry of page) {
      addFindings(ledgerSums.add(entry))
      daySums.add(entry)
    }
    entries += page.length
    const last = page.at(-1)
    if (last) await closeDays(dayOf(last))
  }
  await closeDays(afterAllDays)
  const missing = { what: 'account', of: null, expected: 'an account', found: 'none' } as const
  addFindings(stored ? ledgerSums.compare(stored) : [missing])
  return entries
}

async function* listAllPages(
  tx: Tx,
  { organizationId, pageRows, signal }: Check,
): AsyncGenerator<CheckedEntry[]> {
  let after: LedgerPosition | undefined
  for (;;) {
    signal?.throwIfAborted()
    const page = await readEntries(tx, organizationId, after, pageRows)
    yield page
    after = page.at(-1)
    if (page.length < pageRows) return
  }
}
