import { median } from '../cpu/cpu-table.ts'
import type { Result } from '../cpu/measure-cpu.ts'
import { toTable } from '../table.ts'
import type { Target } from '../targets/target.ts'
import { percentile, type Sender } from './fixed-rate.ts'

const shareOfCapacity = 1 / 4
const seconds = 4

export type FirstToken = { p50: number; p99: number }
type Options = { sender: Sender; plan: { windows: number } }

/**
 * Measures and prints when the first token comes, of each target in turn, at a quarter of what `capacity` was measured to do.
 * Returns the medians of all windows.
 */
export async function printFirstToken(
  targets: readonly Target[],
  capacity: Result | undefined,
  { sender, plan }: Options,
): Promise<FirstToken[]> {
  if (!capacity) throw new Error('The capacity was not measured.')
  const perSecond = Math.round(
    median(capacity.windows.map((window) => window.perSecond)) * shareOfCapacity,
  )
  const windows = targets.map((): FirstToken[] => [])
  // The code for few requests at a time differs from that for many: the first window only warms up.
  for (let window = 0; window <= plan.windows; window++) {
    for (const [index, target] of targets.entries()) {
      const { first } = await sender.send(target, { mode: 'stream', perSecond, seconds })
      const measured = { p50: percentile(first, 0.5), p99: percentile(first, 0.99) }
      if (window > 0) windows[index]?.push(measured)
    }
  }
  const medians = windows.map((own) => ({
    p50: median(own.map(({ p50 }) => p50)),
    p99: median(own.map(({ p99 }) => p99)),
  }))
  const rows = targets.map(({ name }, index) => [
    name,
    `${perSecond}/s`,
    medians[index]?.p50.toFixed(2) ?? '',
    medians[index]?.p99.toFixed(2) ?? '',
  ])
  console.log(`\n${toTable([['first token', 'rate', 'p50 ms', 'p99 ms'], ...rows])}`)
  return medians
}
