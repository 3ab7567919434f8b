import type { Figures } from '../budget/goals.ts'
import { median } from '../cpu/cpu-table.ts'
import { percentile } from '../latency/fixed-rate.ts'
import type { Ended } from './sender.ts'

/** What came of one load: calls per second that were served within it, and milliseconds. */
export type LoadFigures = {
  sent: number
  served: number
  p50: number
  p99: number
  refusedP99: number
  /** How many there are of each status that is neither served nor refused; 0 stands for a connection that failed. */
  others: string
}
/** One run: the goodput is a share of the capacity that was measured in the same run. */
export type OverloadRun = { goodput: number; p99: number; redisLosses: number }

const timesOf = (ended: readonly Ended[]) => ended.map(({ sentAt, doneAt }) => doneAt - sentAt)
const isServed = ({ status }: Ended) => status === 200
const isRefused = ({ status }: Ended) => status === 503 || status === 529

export function loadFiguresOf(ended: readonly Ended[], seconds: number): LoadFigures {
  const served = ended.filter(isServed)
  const refused = ended.filter(isRefused)
  const others = ended.filter((call) => !isServed(call) && !isRefused(call))
  return {
    sent: ended.length / seconds,
    served: served.filter(({ doneAt }) => doneAt <= seconds * 1000).length / seconds,
    p50: percentile(timesOf(served), 0.5),
    p99: percentile(timesOf(served), 0.99),
    refusedP99: percentile(timesOf(refused), 0.99),
    others: describe(others),
  }
}

function describe(ended: readonly Ended[]): string {
  const counts = Object.entries(Object.groupBy(ended, ({ status }) => status))
  return counts.map(([status, calls]) => `${calls?.length} x ${status}`).join(', ') || '-'
}

/** Of the worst run, because every one of them has to hold: an overload comes once. */
export function overloadFiguresOf(runs: readonly OverloadRun[]): Figures {
  const goodputs = runs.map(({ goodput }) => goodput * 100)
  const p99s = runs.map(({ p99 }) => p99)
  const losses = runs.map(({ redisLosses }) => redisLosses)
  return {
    overloadGoodput: { value: Math.min(...goodputs), median: median(goodputs) },
    overloadP99: { value: Math.max(...p99s), median: median(p99s) },
    overloadRedis: { value: Math.max(...losses), median: median(losses) },
  }
}
