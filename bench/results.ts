import type { Window } from './measure.ts'

/** The median of an odd number of windows, so that one disturbed window has no effect. */
function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[Math.floor(sorted.length / 2)] ?? NaN
}

const medianOf = (windows: readonly Window[], read: (window: Window) => number) =>
  median(windows.map(read))

export type Result = { name: string; windows: Window[] }

const requestsPerSecond = ({ windows }: Result) => medianOf(windows, (one) => one.perSecond)
const cpuPerRequest = ({ windows }: Result) => medianOf(windows, (one) => one.cpuMicroseconds)

const heading = [
  '',
  'requests/s',
  'CPU µs',
  'upstream µs',
  '+p50 ms',
  '+p99 ms',
  '+p99.9 ms',
  'memory MB',
]

/** One line per target; latencies are what a target adds to that of the upstream in the same window. */
export function tableOf(results: readonly Result[]): string {
  const [upstream] = results
  const rows = results.map((result) => rowOf(result, upstream?.windows ?? []))
  return [heading, ...rows].map(asLine).join('\n')
}

function rowOf(result: Result, upstream: readonly Window[]): string[] {
  const { name, windows } = result
  const isUpstream = windows === upstream
  const added = (read: (window: Window) => number) => {
    if (isUpstream) return `(${medianOf(windows, read).toFixed(2)})`
    const differences = windows.map((window, index) => {
      const base = upstream[index]
      return base ? read(window) - read(base) : NaN
    })
    return median(differences).toFixed(2)
  }
  return [
    name,
    requestsPerSecond(result).toFixed(0),
    cpuPerRequest(result).toFixed(0),
    medianOf(windows, (one) => one.upstreamCpuMicroseconds).toFixed(0),
    added(({ times }) => times.p50),
    added(({ times }) => times.p99),
    added(({ times }) => times.p999),
    (windows.at(-1)?.memoryMegabytes ?? NaN).toFixed(0),
  ]
}

const asLine = (cells: readonly string[]) =>
  cells.map((cell, index) => (index ? cell.padStart(12) : cell.padEnd(17))).join('')

/** The ratios that have an aim, and whether it is met. */
export function verdictsOf(results: readonly Result[]): string[] {
  const find = (name: string) => results.find((result) => result.name === name)
  const [gatehouse, portkey, bare] = ['Gatehouse', 'Portkey', 'bare Node proxy'].map(find)
  if (!gatehouse) return []
  const verdicts: string[] = []
  if (portkey) {
    const ratio = requestsPerSecond(gatehouse) / requestsPerSecond(portkey)
    verdicts.push(verdict('requests/s, Gatehouse ÷ Portkey', ratio, { atLeast: 4 }))
  }
  if (bare) {
    const ratio = cpuPerRequest(gatehouse) / cpuPerRequest(bare)
    verdicts.push(verdict('CPU per request, Gatehouse ÷ bare Node proxy', ratio, { atMost: 3 }))
  }
  return verdicts
}

type Aim = { atLeast: number } | { atMost: number }

function verdict(what: string, ratio: number, aim: Aim): string {
  const isMet = 'atLeast' in aim ? ratio >= aim.atLeast : ratio <= aim.atMost
  const wanted = 'atLeast' in aim ? `at least ${aim.atLeast}` : `at most ${aim.atMost}`
  return `${what}: ${ratio.toFixed(2)} (aim: ${wanted}, ${isMet ? 'met' : 'missed'})`
}
