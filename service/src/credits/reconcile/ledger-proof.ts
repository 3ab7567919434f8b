import type { LedgerPosition } from '#credits/ledger-store.ts'

import type { CheckedEntry, StoredBalance, UsageDayRow } from './reconcile-store.ts'
import {
  beforeAllDays,
  createDaySums,
  createLedgerSums,
  ledgerDayOf,
  type LedgerFinding,
  type KeptDay,
  type LedgerSums,
} from './sum-ledger.ts'

/** How far the ledger of an organization was proven, and what its entries up to there add up to. */
export type Point = LedgerPosition & { sums: LedgerSums; openDay: KeptDay }

/**
 * Goes through the ledger of one organization, from its beginning or from a point, in the order of time. Entries since
 * `settledBefore` are compared like all others, but no point is put behind them: should the server's clock go back a little,
 * later entries may still come before them.
 */
export function createProof(from: Point | undefined, settledBefore: Date) {
  const ledgerSums = createLedgerSums(from?.sums)
  const daySums = createDaySums(from?.openDay)
  let position: LedgerPosition | undefined = from
  let firstOpenDay = from?.openDay.day ?? beforeAllDays
  let hasEntries = false
  let settled: { point: Point | undefined } | undefined

  const pointHere = (): Point | undefined =>
    position && hasEntries
      ? {
          at: position.at,
          seq: position.seq,
          sums: ledgerSums.current(),
          openDay: daySums.keep(ledgerDayOf(position)),
        }
      : from

  return {
    /** The last entry that was added, or the point. */
    position: () => position,
    /** Whether any entry was added. */
    hasEntries: () => hasEntries,
    /** All days before this one have been compared. */
    openDay: () => firstOpenDay,
    /** The last point that may be kept; `from` if it has not moved. To be asked for before all days are compared. */
    point: () => (settled ? settled.point : pointHere()),
    add(entry: CheckedEntry): LedgerFinding[] {
      if (entry.at >= settledBefore) settled ??= { point: pointHere() }
      position = entry
      hasEntries = true
      const findings = ledgerSums.add(entry)
      daySums.add(entry)
      return findings
    },
    /** Compares the rows of the open days before `before`. */
    closeDays(rows: readonly UsageDayRow[], before: string): LedgerFinding[] {
      firstOpenDay = before
      return daySums.compare(rows, before)
    },
    /** With the balance; what is held says nothing about entries. */
    compare: (stored: StoredBalance | undefined): LedgerFinding[] =>
      stored
        ? ledgerSums.compare(stored)
        : [{ what: 'account', of: null, expected: 'an account', found: 'none' }],
  }
}
export type Proof = ReturnType<typeof createProof>
