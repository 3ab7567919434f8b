import { type Rest, withoutRest } from '#platform/background/run-task.ts'
import type { Db } from '#platform/database.ts'

import { checkInManySnapshots } from './check-whole.ts'
import { readStandings, saveOutcomes, type Standing } from './point-store.ts'
import { type Proving, proveFromPoints } from './prove-from-points.ts'
import { createReport, type Report } from './report.ts'
import { compareBalance, compareHolds, type Difference } from './sum-ledger.ts'

/** How many organizations are looked at with one statement. */
const organizationsMax = 100
/** How many entries are read in one step; each organization with news gets a part of them. */
export const entriesMax = 1000
/** How many organizations are remembered until their whole ledgers are checked. The others are found again by the next check. */
const wholeChecksMax = 1000

export type NewsOptions = {
  signal?: AbortSignal
  rest?: Rest
  /** Called if an organization cannot be read. */
  onFailure: (error: unknown) => void
  /** Called with the differences of one organization, as far as they are listed, and the number of all so far. */
  onDifferences?: (differences: readonly Difference[], count: number) => void
  entriesMax?: number
  differencesMax?: number
  wholeChecksMax?: number
}

type Pass = Proving & Required<Pick<NewsOptions, 'onDifferences' | 'wholeChecksMax'>>

/** Organizations whose whole ledger is to be checked. */
type ToCheck = { suspects: string[]; known: string[] }

/**
 * Checks what has come since the last check. The stored balance of every organization is compared with what its ledger was proven to
 * add up to; new entries are read, checked and added up from the proven point on, with the day sums since the day of the point.
 *
 * Whatever disagrees is not reported at once: the whole ledger of that organization is checked, so that the report has exactly what
 * `reconcile` would find. That may take hours, so it is done when all organizations have been compared. Only holds are reported as they are
 * found. Points are moved in small statements as the check goes on, so one that is interrupted loses little.
 */
export async function checkNews(
  db: Db,
  options: NewsOptions,
): Promise<Report & { postponed: number }> {
  const progress = createReport(options)
  const pass: Pass = {
    db,
    progress,
    rest: withoutRest,
    entriesMax,
    wholeChecksMax,
    onDifferences: () => undefined,
    ...options,
    signal: options.signal,
  }
  const { suspects, known } = await compareAll(pass)
  // New ones first: those that are known to differ have been reported before.
  for (const id of [...suspects, ...known]) await checkWhole(pass, id)
  return { ...progress.report, postponed: progress.postponed() }
}

async function compareAll(pass: Pass): Promise<ToCheck> {
  const { report } = pass.progress
  const toCheck: ToCheck = { suspects: [], known: [] }
  const idsOf = (list: readonly Standing[]) => list.map(({ organizationId }) => organizationId)
  for (let after = ''; ;) {
    pass.signal?.throwIfAborted()
    const standings = await readStandings(pass.db, after, organizationsMax)
    report.organizations += standings.length
    const last = standings.at(-1)
    if (!last) return toCheck
    after = last.organizationId
    for (const standing of standings) reportHolds(pass, standing)
    await pass.rest()
    remember(pass, toCheck.known, idsOf(standings.filter(({ differs }) => differs)))
    const unquiet = idsOf(standings.filter((each) => !each.differs && !isQuiet(each)))
    if (unquiet.length > 0) {
      remember(pass, toCheck.suspects, await proveFromPoints(pass, unquiet))
    }
  }
}

const isQuiet = ({ balance, sums, hasNew }: Standing) =>
  !hasNew && balance !== undefined && compareBalance(sums, balance).length === 0

/** The statement that has read them is one snapshot. */
function reportHolds(pass: Pass, { organizationId, balance }: Standing) {
  const findings = balance ? compareHolds(balance) : []
  if (findings.length === 0) return
  const { differences } = pass.progress.report
  const listed = differences.length
  pass.progress.addFindings(organizationId, findings)
  pass.onDifferences(differences.slice(listed), pass.progress.report.differenceCount)
}

function remember({ progress, wholeChecksMax: max }: Pass, list: string[], ids: string[]) {
  const room = Math.max(0, max - list.length)
  list.push(...ids.slice(0, room))
  progress.addPostponed(Math.max(0, ids.length - room))
}

async function checkWhole(pass: Pass, organizationId: string) {
  const { db, progress } = pass
  const check = { ...pass, organizationId, pageRows: pass.entriesMax }
  const { report } = progress
  const [listed, counted] = [report.differences.length, report.differenceCount]
  const outcome = await checkInManySnapshots(db, progress, check)
  if (report.differenceCount > counted) {
    pass.onDifferences(report.differences.slice(listed), report.differenceCount)
  }
  if (outcome) await saveOutcomes(db, [outcome])
  await pass.rest()
}
