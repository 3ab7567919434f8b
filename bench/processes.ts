import type { Figures } from './budget/goals.ts'
import { median } from './cpu/cpu-table.ts'
import type { Sender } from './latency/fixed-rate.ts'
import { createCpuMeter } from './process-usage.ts'
import type { OwnServers } from './servers/own-servers.ts'
import { toTable } from './table.ts'
import type { Target } from './targets/target.ts'

const seconds = 4
const mode = 'plain'

type Options = {
  one: Target
  two: Target
  servers: OwnServers
  sender: Sender
  perSecond: number
  windows: number
}
type Window = { service: number; postgres: number; redis: number }

/** What a request costs when two processes share a rate that one of them could serve alone. */
export async function measureProcesses(options: Options): Promise<Figures> {
  const { one, two, servers, sender, perSecond, windows } = options
  const targets = [one, two]
  const measured = targets.map((): Window[] => [])
  // The first window only warms up.
  for (let window = 0; window <= windows; window++) {
    for (const [index, target] of targets.entries()) {
      const meters = [target, servers.postgres, servers.redis].map(({ pids }) =>
        createCpuMeter(pids),
      )
      const read = () => Promise.all(meters.map((meter) => meter()))
      const before = await read()
      const { whole } = await sender.send(target, { mode, perSecond, seconds })
      const after = await read()
      const [service = 0, postgres = 0, redis = 0] = after.map(
        (microseconds, part) => (microseconds - (before[part] ?? 0)) / whole.length,
      )
      if (window > 0) measured[index]?.push({ service, postgres, redis })
    }
  }
  const valuesOf = (index: number, part: keyof Window) =>
    measured[index]?.map((window) => window[part]) ?? []
  const usual = (index: number, part: keyof Window) => median(valuesOf(index, part))
  const least = (index: number, part: keyof Window) => Math.min(...valuesOf(index, part))
  const parts = ['service', 'postgres', 'redis'] as const
  const rows = ['one process', 'two processes'].map((name, index) => [
    name,
    `${perSecond}/s`,
    ...parts.map((part) => `${usual(index, part).toFixed(0)} (${least(index, part).toFixed(0)})`),
  ])
  const heading = ['median (least)', 'rate', 'CPU µs', 'PostgreSQL µs', 'Redis µs']
  console.log(`\n${toTable([heading, ...rows])}`)
  return {
    processes: {
      value: least(1, 'service') / least(0, 'service'),
      median: usual(1, 'service') / usual(0, 'service'),
    },
  }
}
