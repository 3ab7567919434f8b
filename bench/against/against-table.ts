import { type Mode, modes } from '../chat-call.ts'
import { leastOf } from '../cpu/cpu-table.ts'
import type { Result } from '../cpu/measure-cpu.ts'
import { leastTimes, type WindowTimes } from '../latency/window-times.ts'
import { toMarkdown } from '../table.ts'

/** What was measured of a target in one mode: at full load, and at a fixed rate. */
type Measured = { cpu: Result; times: readonly WindowTimes[] }
export type Compared = { bare: Measured; before: Measured; now: Measured }

const parts = ['service', 'worker', 'postgres', 'redis'] as const
const partNames = { service: 'CPU', worker: 'worker', postgres: 'PostgreSQL', redis: 'Redis' }
const percentiles = { p50: 'p50', p99: 'p99', firstP99: 'first token p99' } as const
const modeNames = { plain: 'plain', stream: 'streamed' } as const satisfies Record<Mode, string>

/** Both working copies beside each other, by their least windows; above 1 the earlier one took more. */
export function againstTableOf(commit: string, compared: Record<Mode, Compared>): string {
  const rows = modes.flatMap((mode) => rowsOf(modeNames[mode], compared[mode]))
  return toMarkdown([['Least windows', commit, 'Now', `${commit} ÷ now`], ...rows])
}

function rowsOf(mode: string, { bare, before, now }: Compared): string[][] {
  const unit = leastOf(bare.cpu, 'service')
  const [bareTimes, timesBefore, timesNow] = [bare, before, now].map(({ times }) =>
    leastTimes(times),
  )
  const rows = parts.map((part) => {
    const [was, is] = [leastOf(before.cpu, part) / unit, leastOf(now.cpu, part) / unit]
    return row(`${partNames[part]}, ${mode} ÷ bare proxy`, '', [was, is])
  })
  for (const [name, what] of Object.entries(percentiles) as [keyof WindowTimes, string][]) {
    if (!bareTimes || !timesBefore || !timesNow) continue
    if (name === 'firstP99' && mode !== modeNames.stream) continue
    const base = bareTimes[name]
    const added = [timesBefore[name] - base, timesNow[name] - base] as const
    rows.push(row(`added time, ${mode}, ${what}`, ' ms', added))
  }
  const memory = [before.cpu.memoryMegabytes, now.cpu.memoryMegabytes] as const
  return [...rows, row(`memory after full load, ${mode}`, ' MB', memory)]
}

/** A time that cannot be told from the bare proxy's has no ratio. */
function row(name: string, unit: string, [before, now]: readonly [number, number]): string[] {
  const ratio = before > 0 && now > 0 ? (before / now).toFixed(2) : ''
  return [name, `${before.toFixed(2)}${unit}`, `${now.toFixed(2)}${unit}`, ratio]
}
