import { percentile } from '../latency/fixed-rate.ts'
import { toMarkdown } from '../table.ts'
import type { Marks } from './marks.ts'

/** In the order in which a call takes them. */
const steps = [
  'reading the request, until the limiter is asked',
  'limiter, Redis',
  'preparing the checks',
  'checks before the hold',
  'hold, PostgreSQL',
  'checks after the hold',
  'upstream, until the first piece',
  'upstream, until the last piece',
  'settling, PostgreSQL',
  'settling, Redis',
  'after settling, until the answer is written',
  'whole call',
  'event loop delay, p50 of a window',
  'event loop delay, p99 of a window',
  'pause of the garbage collector',
]

export function joinMarks(windows: readonly Marks[]): Marks {
  const all: Marks = {}
  for (const window of windows) {
    for (const [name, values] of Object.entries(window)) (all[name] ??= []).push(...values)
  }
  return all
}

/** What each step took, in milliseconds. A step that no call took is not shown; one that is not known here comes last. */
export function traceTableOf(title: string, marks: Marks): string {
  const further = Object.keys(marks).filter((name) => !steps.includes(name))
  const rows = [...steps, ...further].flatMap((name) => {
    const values = marks[name] ?? []
    if (values.length === 0) return []
    const shown = [percentile(values, 0.5), percentile(values, 0.99), Math.max(...values)]
    return [[name, String(values.length), ...shown.map((ms) => ms.toFixed(2))]]
  })
  return toMarkdown([[title, 'times', 'p50 ms', 'p99 ms', 'most ms'], ...rows])
}
