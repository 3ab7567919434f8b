import type { LedgerPosition } from '#credits/ledger-store.ts'
import type { Db, Tx } from '#platform/database.ts'

import { createProof, type Point, type Proof } from './ledger-proof.ts'
import { readPoints } from './point-store.ts'
import {
  readEntries,
  readStarts,
  readStoredBalance,
  readUsageDays,
  type Start,
  withSnapshot,
} from './reconcile-store.ts'
import { afterAllDays, ledgerDayOf, type LedgerFinding } from './sum-ledger.ts'

/** In which snapshot a page is read: each in its own, or all in the same one. */
export type InSnapshot = <T>(read: (tx: Tx) => Promise<T>) => Promise<T>

/** Each page in a snapshot of its own, so that PostgreSQL can remove dead rows during a long check. */
export const eachInItsOwn =
  (db: Db): InSnapshot =>
  (read) =>
    withSnapshot(db, read)

export type LedgerCheck = {
  organizationId: string
  pageRows: number
  signal: AbortSignal | undefined
}

export type CheckedPage = {
  entries: number
  findings: LedgerFinding[]
  /** The last point that may be kept. */
  point: Point | undefined
  /** Its last entry was the last one of the ledger in its snapshot, and the balance was compared. */
  isLast: boolean
  /** Of the row of the point, before the first page was read. */
  version: string | undefined
}

/**
 * Reads the ledger of an organization, from its beginning or from what was proven, with the day sums. It takes no locks: calls go on
 * meanwhile. Only one page is in memory at a time, with the sums of the days on it. A snapshot that has an entry has all earlier ones, so pages of
 * different snapshots fit together, and the balance is compared in that of the last one.
 *
 * Ends without a last page if entries come faster than it reads them.
 */
export async function* checkPages(
  inSnapshot: InSnapshot,
  check: LedgerCheck & { from: From },
): AsyncGenerator<CheckedPage> {
  const { proof, end, version } = await inSnapshot((tx) => begin(tx, check))
  let read = 0
  let readUpToEnd = 0
  for (;;) {
    check.signal?.throwIfAborted()
    const page = await inSnapshot((tx) => checkPage(tx, proof, check))
    read += page.entries
    if (!isPast(proof.position(), end)) readUpToEnd = read
    yield { ...page, version }
    if (page.isLast || isTooBusy(read, readUpToEnd, check.pageRows)) return
  }
}

/** Where a check begins; a proof goes on behind the last entry that was added to it. */
export type From = 'beginning' | 'point' | Proof

async function begin(tx: Tx, { organizationId, from }: LedgerCheck & { from: From }) {
  const start = (await readStarts(tx, [organizationId])).get(organizationId) as Start
  if (typeof from === 'object') return { ...start, proof: from }
  const points = from === 'point' ? await readPoints(tx, [organizationId]) : undefined
  return { ...start, proof: createProof(points?.get(organizationId), start.settledBefore) }
}

/** Whether there were no entries at `position` yet when `end` was the position of the last one. */
export const isPast = (position: LedgerPosition | undefined, end: LedgerPosition | undefined) =>
  position !== undefined &&
  (end === undefined ||
    position.at > end.at ||
    (position.at.getTime() === end.at.getTime() && BigInt(position.seq) > BigInt(end.seq)))

/** Every ledger that grows at less than half the speed at which it is read is read to its end. */
const isTooBusy = (read: number, readUpToEnd: number, pageRows: number) =>
  read > 2 * readUpToEnd + 10 * pageRows

async function checkPage(tx: Tx, proof: Proof, { organizationId, pageRows }: LedgerCheck) {
  const page = await readEntries(tx, organizationId, proof.position(), pageRows)
  const findings = page.flatMap((entry) => proof.add(entry))
  const isLast = page.length < pageRows
  const point = proof.point()
  const last = page.at(-1)
  // Entries come in the order of time: all days before that of the last entry are complete.
  const before = isLast || !last ? afterAllDays : ledgerDayOf(last)
  if (before !== proof.openDay()) {
    const rows = await readUsageDays(tx, organizationId, proof.openDay(), before)
    findings.push(...proof.closeDays(rows, before))
  }
  if (isLast) findings.push(...proof.compare(await readStoredBalance(tx, organizationId)))
  return { entries: page.length, findings, point, isLast }
}
