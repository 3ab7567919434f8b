import type { LedgerPosition } from '#credits/ledger-store.ts'
import type { Rest } from '#platform/background/run-task.ts'
import type { Db, Tx } from '#platform/database.ts'

import { checkPages, eachInItsOwn, type From, isPast } from './check-organization.ts'
import { createProof, type Proof } from './ledger-proof.ts'
import { movePoints, type OrganizationPoint, readPoints } from './point-store.ts'
import {
  type CheckedEntry,
  readNewEntries,
  readStarts,
  readStoredBalances,
  readUsageDaysOf,
  withSnapshot,
} from './reconcile-store.ts'
import type { ReportInProgress } from './report.ts'
import { afterAllDays, ledgerDayOf, type LedgerFinding } from './sum-ledger.ts'

export type Proving = {
  db: Db
  progress: ReportInProgress
  signal: AbortSignal | undefined
  rest: Rest
  onFailure: (error: unknown) => void
  entriesMax: number
}

/**
 * Reads what has come since the points of organizations, and moves the points. Returns the organizations where something disagrees, whose whole
 * ledger has to be checked.
 */
export async function proveFromPoints(
  proving: Proving,
  organizationIds: readonly string[],
): Promise<string[]> {
  const { db, progress, rest, signal } = proving
  const proofs: Proofs = new Map()
  const suspects: string[] = []
  const alone = new Map<string, From>()
  let left = organizationIds
  try {
    while (left.length > 0) {
      signal?.throwIfAborted()
      const step = await withSnapshot(db, (tx) => proveSome(tx, proofs, left, proving.entriesMax))
      await movePoints(db, step.points)
      progress.report.entries += step.entries
      suspects.push(...step.suspects)
      for (const [id, proof] of step.busy) alone.set(id, proof)
      left = step.left
      await rest()
    }
  } catch (error) {
    signal?.throwIfAborted()
    // One of them cannot be read, or the connection was lost. Each by itself, it is found which, and the others are checked.
    proving.onFailure(error)
    for (const id of left) alone.set(id, 'point')
  }
  for (const [id, from] of alone) {
    if (await isSuspectAlone(proving, id, from)) suspects.push(id)
  }
  return suspects
}

/** An error is no difference: it does not make the whole ledger be read. */
async function isSuspectAlone(
  proving: Proving,
  organizationId: string,
  from: From,
): Promise<boolean> {
  const { signal, progress, rest, onFailure } = proving
  try {
    return await proveAlone(proving, organizationId, from)
  } catch (error) {
    signal?.throwIfAborted()
    progress.addUnread(error, onFailure)
    await rest()
    return false
  }
}

async function proveAlone(proving: Proving, organizationId: string, from: From): Promise<boolean> {
  const { db, progress, rest, signal, entriesMax } = proving
  const check = { organizationId, pageRows: entriesMax, signal, from }
  for await (const page of checkPages(eachInItsOwn(db), check)) {
    const { entries, findings, point, isLast } = page
    progress.report.entries += entries
    if (findings.length > 0) return true
    if (point && entries > 0) await movePoints(db, [{ organizationId, point }])
    await rest()
    if (isLast) return false
  }
  progress.addPostponed()
  return false
}

type ProvenStep = {
  points: OrganizationPoint[]
  suspects: string[]
  /** Organizations with more entries. */
  left: string[]
  /** Organizations with more entries, all of which have come since their first ones were read. */
  busy: [id: string, proof: Proof][]
  entries: number
}

/** Reads the next entries of each organization, and compares those whose last entry was read. */
async function proveSome(
  tx: Tx,
  proofs: Proofs,
  organizationIds: readonly string[],
  rowsMax: number,
): Promise<ProvenStep> {
  await beginProofs(tx, proofs, organizationIds)
  const limit = Math.max(1, Math.floor(rowsMax / organizationIds.length))
  const positions = organizationIds.map((id) => ({ id, after: proofs.get(id)?.proof.position() }))
  const entries = await readNewEntries(tx, positions, limit)
  const byOrganization = Map.groupBy(entries, ({ organization_id }) => organization_id)
  const pages = organizationIds.map((id): Page => {
    const page = byOrganization.get(id) ?? []
    return { ...(proofs.get(id) as Started), id, page, isLast: page.length < limit }
  })
  const step: ProvenStep = { points: [], suspects: [], left: [], busy: [], entries: entries.length }
  const compare = await readComparison(tx, pages)
  for (const page of pages) {
    const { id, isLast, proof, end } = page
    const findings = page.page.flatMap((entry) => proof.add(entry))
    const point = proof.hasEntries() ? proof.point() : undefined
    findings.push(...compare(page))
    if (findings.length > 0) step.suspects.push(id)
    else if (point) step.points.push({ organizationId: id, point })
    const hasMore = findings.length === 0 && !isLast
    if (!hasMore) proofs.delete(id)
    else if (isPast(proof.position(), end)) step.busy.push([id, proof])
    else step.left.push(id)
  }
  return step
}

async function beginProofs(tx: Tx, proofs: Proofs, organizationIds: readonly string[]) {
  const unknown = organizationIds.filter((id) => !proofs.has(id))
  if (unknown.length === 0) return
  const starts = await readStarts(tx, unknown)
  const points = await readPoints(tx, unknown)
  for (const [id, { settledBefore, end }] of starts) {
    proofs.set(id, { proof: createProof(points.get(id), settledBefore), end })
  }
}

type Started = {
  proof: Proof
  /** The position of the last entry when the first ones were read. */
  end: LedgerPosition | undefined
}
type Proofs = Map<string, Started>

type Page = Started & { id: string; page: readonly CheckedEntry[]; isLast: boolean }

/** Reads what the pages are compared with: day sums, and the balances of those whose last entry was read. */
async function readComparison(tx: Tx, pages: readonly Page[]) {
  const ranges = pages.flatMap(({ id, page, proof, isLast }) => {
    const last = page.at(-1)
    const before = isLast ? afterAllDays : last && ledgerDayOf(last)
    // Without new entries the day sums were compared when the point was put there.
    const hasNews = last !== undefined || proof.hasEntries()
    if (!hasNews || before === undefined || before === proof.openDay()) return []
    return [{ id, from: proof.openDay(), before }]
  })
  const days = ranges.length > 0 ? await readUsageDaysOf(tx, ranges) : []
  const daysOf = Map.groupBy(days, ({ organization_id }) => organization_id)
  const beforeOf = new Map(ranges.map(({ id, before }) => [id, before]))
  const ended = pages.filter(({ isLast }) => isLast).map(({ id }) => id)
  const balances = ended.length > 0 ? await readStoredBalances(tx, ended) : new Map()
  return ({ id, proof, isLast }: Page): LedgerFinding[] => {
    const before = beforeOf.get(id)
    return [
      ...(before === undefined ? [] : proof.closeDays(daysOf.get(id) ?? [], before)),
      ...(isLast ? proof.compare(balances.get(id)) : []),
    ]
  }
}
