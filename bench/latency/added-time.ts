import type { Figures } from '../budget/goals.ts'
import { type Mode, modes } from '../chat-call.ts'
import { toTable } from '../table.ts'
import type { Target } from '../targets/target.ts'
import type { Sender } from './fixed-rate.ts'
import { measureTimes, quarterOf } from './measure-times.ts'
import { addedTimeOf, leastTimes, medianTimes, type WindowTimes } from './window-times.ts'

type Options = {
  bare: Target
  gatehouse: Target
  sender: Sender
  /** Requests per second that Gatehouse reached in this run. */
  capacity: Record<Mode, number>
  windows: number
}

/** The latency of Gatehouse minus that of the bare proxy, both at a quarter of what Gatehouse can do. */
export async function measureAddedTime(options: Options) {
  const { bare, gatehouse, sender, capacity, windows } = options
  const rows: string[][] = []
  const figures: Figures = {}
  const p50OfBare: number[][] = []
  for (const mode of modes) {
    const perSecond = quarterOf(capacity[mode])
    const rate = { sender, mode, perSecond, windows }
    const [ofBare = [], own = []] = await measureTimes([bare, gatehouse], rate)
    rows.push(timesRow(`${mode}: bare proxy`, perSecond, ofBare))
    rows.push(timesRow(`${mode}: Gatehouse`, perSecond, own))
    Object.assign(figures, addedTimeOf(mode, ofBare, own))
    p50OfBare.push(ofBare.map(({ p50 }) => p50))
  }
  console.log(`\n${toTable([timesHeading, ...rows])}`)
  return { figures, bare: p50OfBare }
}

export const timesHeading = [
  'times: median (least)',
  'rate',
  'p50 ms',
  'p99 ms',
  'first token p99 ms',
]

export function timesRow(
  name: string,
  perSecond: number,
  windows: readonly WindowTimes[],
): string[] {
  const [usual, least] = [medianTimes(windows), leastTimes(windows)]
  const parts = ['p50', 'p99', 'firstP99'] as const
  const cells = parts.map((part) => `${usual[part].toFixed(2)} (${least[part].toFixed(2)})`)
  return [name, `${perSecond}/s`, ...cells]
}
