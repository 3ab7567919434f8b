import type { Db, Tx } from '#platform/database.ts'

import type { LedgerPosition } from './read-store.ts'
import {
  atOneMoment,
  type Entry,
  listOrganizationIds,
  readEntries,
  readStanding,
  readUsageDays,
} from './reconcile-store.ts'
import {
  createDayTally,
  createTally,
  dayAfterAll,
  dayBeforeAll,
  dayOf,
  type Difference,
  type Found,
} from './tally.ts'

export type Report = {
  organizations: number
  entries: number
  /** How many there are; only the first are listed. */
  differenceCount: number
  differences: Difference[]
  /** Organizations that could not be read to the end; of those nothing is known. */
  unread: number
}

export type ReconcileOptions = {
  /** Only this one; without it, all. */
  organizationId?: string
  signal?: AbortSignal
  differencesMax?: number
  pageRows?: number
  /** Told why an organization could not be read; without it, that ends the whole. */
  onFailure?: (error: unknown) => void
}

const rethrow = (error: unknown) => {
  throw error
}

const organizationsPerPage = 100
/** After so many it is the database that cannot be read. */
const unreadMax = 10

/**
 * Computes again from the ledger what is kept beside it, and every charge from what stands beside it.
 *
 * Calls go on meanwhile: each organization is read in one transaction that sees a single moment and locks
 * nothing. Only one page of its ledger is in memory at a time, and the sums of the days on it.
 */
export async function reconcile(db: Db, options: ReconcileOptions = {}): Promise<Report> {
  const { organizationId, signal, differencesMax = 100, pageRows = 1000 } = options
  const { onFailure = rethrow } = options
  const report: Report = {
    ...{ organizations: 0, entries: 0, differenceCount: 0, differences: [], unread: 0 },
  }
  /** One that cannot be read must not keep the others from being looked at. */
  const onUnread = (error: unknown) => {
    signal?.throwIfAborted()
    if (report.unread >= unreadMax) throw error
    onFailure(error)
    return undefined
  }
  const ids = organizationId === undefined ? everyOrganization(db) : [organizationId]
  for await (const id of ids) {
    signal?.throwIfAborted()
    const note = (found: readonly Found[]) => {
      report.differenceCount += found.length
      const room = Math.max(0, differencesMax - report.differences.length)
      const listed = found.slice(0, room).map((each) => ({ organizationId: id, ...each }))
      report.differences.push(...listed)
    }
    const given = { organizationId: id, pageRows, note, signal }
    const entries = await atOneMoment(db, (tx) => checkOrganization(tx, given)).catch(onUnread)
    if (entries === undefined) report.unread++
    else report.entries += entries
    report.organizations++
  }
  return report
}

async function* everyOrganization(db: Db): AsyncGenerator<string> {
  let after = ''
  for (;;) {
    const ids = await listOrganizationIds(db, after, organizationsPerPage)
    yield* ids
    const last = ids.at(-1)
    if (last === undefined) return
    after = last
  }
}

type Given = {
  organizationId: string
  pageRows: number
  note: (found: readonly Found[]) => void
  signal: AbortSignal | undefined
}

/** Returns how many entries it has looked at. */
async function checkOrganization(tx: Tx, given: Given): Promise<number> {
  const { organizationId, note } = given
  const tally = createTally()
  const days = createDayTally()
  let openDay = dayBeforeAll
  let entries = 0
  /** Entries come in the order of time: days before the last one seen are complete. */
  const closeDays = async (before: string) => {
    if (before === openDay) return
    const rows = await readUsageDays(tx, organizationId, openDay, before)
    note(days.compare(rows, before))
    openDay = before
  }
  const standing = await readStanding(tx, organizationId)
  for await (const page of everyPage(tx, given)) {
    for (const entry of page) {
      note(tally.add(entry))
      days.add(entry)
    }
    entries += page.length
    const last = page.at(-1)
    if (last) await closeDays(dayOf(last))
  }
  await closeDays(dayAfterAll)
  const missing = { what: 'account', of: null, expected: 'an account', found: 'none' } as const
  note(standing ? tally.compare(standing) : [missing])
  return entries
}

async function* everyPage(
  tx: Tx,
  { organizationId, pageRows, signal }: Given,
): AsyncGenerator<Entry[]> {
  let after: LedgerPosition | undefined
  for (;;) {
    signal?.throwIfAborted()
    const page = await readEntries(tx, organizationId, after, pageRows)
    yield page
    after = page.at(-1)
    if (page.length < pageRows) return
  }
}
