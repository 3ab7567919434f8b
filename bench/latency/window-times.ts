import type { Figures } from '../budget/goals.ts'
import type { Mode } from '../chat-call.ts'
import { median } from '../cpu/cpu-table.ts'
import type { Times } from './fixed-rate-sender.ts'
import { percentile } from './fixed-rate.ts'

/** What the calls of one window took, in milliseconds. */
export type WindowTimes = { p50: number; p99: number; firstP99: number }
type Part = keyof WindowTimes

export const timesOf = ({ first, whole }: Times): WindowTimes => ({
  p50: percentile(whole, 0.5),
  p99: percentile(whole, 0.99),
  firstP99: percentile(first, 0.99),
})

const combine = (
  windows: readonly WindowTimes[],
  of: (values: readonly number[]) => number,
): WindowTimes => {
  const part = (name: Part) => of(windows.map((window) => window[name]))
  return { p50: part('p50'), p99: part('p99'), firstP99: part('firstP99') }
}

export const leastTimes = (windows: readonly WindowTimes[]) =>
  combine(windows, (values) => Math.min(...values))
export const medianTimes = (windows: readonly WindowTimes[]) => combine(windows, median)

const p99AtMost = 15
const p99Ratio = 3

/**
 * What Gatehouse adds to the bare proxy: its least window minus the least of the bare proxy, each percentile for itself. Not
 * the least difference of two windows, which is the one where the bare proxy was disturbed most.
 */
export function addedTimeOf(
  mode: Mode,
  bare: readonly WindowTimes[],
  gatehouse: readonly WindowTimes[],
): Figures {
  const least = { bare: leastTimes(bare), own: leastTimes(gatehouse) }
  const usual = { bare: medianTimes(bare), own: medianTimes(gatehouse) }
  const added = (part: Part) => ({
    value: least.own[part] - least.bare[part],
    median: usual.own[part] - usual.bare[part],
  })
  const p99 = added('p99')
  const holds = p99.value <= p99AtMost || least.own.p99 <= p99Ratio * least.bare.p99
  return {
    [`${mode}P50`]: added('p50'),
    [`${mode}P99`]: { ...p99, holds },
    ...(mode === 'stream' && { firstTokenP99: added('firstP99') }),
  }
}
