import type { Report } from './report.ts'

/** A line for the whole report and one for each difference; the exit code is for scripts. */
export function describeReport(report: Report): { text: string; exitCode: 0 | 1 } {
  const { organizations, entries, differenceCount, differences } = report
  const checked = `${organizations} organizations, ${entries} ledger entries`
  if (differenceCount === 0) return { text: `${checked}: everything agrees.\n`, exitCode: 0 }
  const lines = differences.map(
    ({ organizationId, what, of, expected, found }) =>
      `${organizationId}: ${what}${of === null ? '' : ` (${of})`}: expected ${expected}, found ${found}`,
  )
  const left = differenceCount - differences.length
  const more = left > 0 ? [`... and ${left} more.`] : []
  const head = `${checked}: ${differenceCount} differences.`
  return { text: `${[head, ...lines, ...more].join('\n')}\n`, exitCode: 1 }
}
