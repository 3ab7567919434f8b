import type { Figures } from '../budget/goals.ts'
import type { Mode } from '../chat-call.ts'
import { medianTimes, type WindowTimes } from '../latency/window-times.ts'

/** The bare proxy and Gatehouse in turn. */
export type Block = { bare: readonly WindowTimes[]; gatehouse: readonly WindowTimes[] }
export type Calm = { quiet: Block; busy: Block }

/**
 * The added time beside background work, as a multiple of the added time without it. Of the medians, not of the least windows: the
 * least of the busy ones would be the one that the work disturbed least.
 */
export function calmFiguresOf(mode: Mode, { quiet, busy }: Calm): Figures {
  const ratio = (part: 'p50' | 'p99') => ({ value: addedOf(busy, part) / addedOf(quiet, part) })
  return mode === 'plain'
    ? { calmPlainP50: ratio('p50'), calmPlainP99: ratio('p99') }
    : { calmStreamP50: ratio('p50'), calmStreamP99: ratio('p99') }
}

/** Why there is no ratio of added times; undefined if there is one. Noise may make Gatehouse look as quick as the bare proxy. */
export function findNothingAdded(calm: Calm): string | undefined {
  for (const [name, block] of Object.entries(calm)) {
    for (const part of ['p50', 'p99'] as const) {
      const added = addedOf(block, part)
      if (!(added > 0))
        return `Gatehouse added ${added.toFixed(3)} ms to the ${part} of the ${name} windows`
    }
  }
  return undefined
}

const addedOf = ({ bare, gatehouse }: Block, part: 'p50' | 'p99') =>
  medianTimes(gatehouse)[part] - medianTimes(bare)[part]

/** When a check of the ledger ended, in milliseconds since 1970, and how many organizations it has looked at. */
type LedgerCheck = { at: number; organizations: number }

/** Times are milliseconds since 1970. `isBehind`: whether the sink still was at the end of each window. */
type Background = {
  startedAt: number
  endedAt: number
  check: LedgerCheck | undefined
  isBehind: readonly boolean[]
}

/** The first check that the log of a worker tells of. */
export function findCheck(log: string): LedgerCheck | undefined {
  const line = log.split('\n').find((each) => each.includes('"event":"ledger_checked"'))
  if (line === undefined) return undefined
  const { time, organizations } = JSON.parse(line) as { time: string; organizations: number }
  return { at: Date.parse(time), organizations }
}

const organizationsLeast = 1000

/** Why the busy windows were not busy; undefined if they were. */
export function findInvalid(background: Background): string | undefined {
  const { startedAt, endedAt, check, isBehind } = background
  if (!isBehind.every(Boolean)) {
    const windows = isBehind.filter(Boolean).length
    return `the sink had caught up after ${windows} of ${isBehind.length} windows`
  }
  if (!check) return 'the worker did not check the ledger'
  if (check.at < startedAt) return 'the worker had checked the ledger before the windows'
  if (check.at > endedAt) return 'the worker checked the ledger after the windows'
  if (check.organizations < organizationsLeast) {
    return `the worker checked ${check.organizations} organizations instead of ${organizationsLeast}`
  }
  return undefined
}
