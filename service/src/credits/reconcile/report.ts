import type { Difference, LedgerFinding } from './sum-ledger.ts'

export type Report = {
  organizations: number
  entries: number
  /** All differences; only the first of them are in `differences`. */
  differenceCount: number
  differences: Difference[]
  /** How many organizations could not be read. */
  unread: number
}

/** After this many unreadable organizations the database itself must be at fault. */
const unreadMax = 10

export function createReport({ differencesMax = 100 } = {}) {
  const report: Report = {
    organizations: 0,
    entries: 0,
    differenceCount: 0,
    differences: [],
    unread: 0,
  }
  let postponed = 0
  return {
    report,
    /** How many organizations are left to the next check: there are too many to remember, or entries come faster than they are read. */
    postponed: () => postponed,
    addPostponed(count = 1) {
      postponed += count
    },
    addFindings(organizationId: string, findings: readonly LedgerFinding[]) {
      report.differenceCount += findings.length
      const room = Math.max(0, differencesMax - report.differences.length)
      const listed = findings.slice(0, room).map((each) => ({ organizationId, ...each }))
      report.differences.push(...listed)
    },
    /** An organization that cannot be read must not keep the others from being checked. */
    addUnread(error: unknown, onFailure: (error: unknown) => void) {
      if (report.unread >= unreadMax) throw error
      onFailure(error)
      report.unread++
    },
  }
}
export type ReportInProgress = ReturnType<typeof createReport>
