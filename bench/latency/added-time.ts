import type { Figures } from '../budget/goals.ts'
import { type Mode, modes } from '../chat-call.ts'
import { median } from '../cpu/cpu-table.ts'
import { toTable } from '../table.ts'
import type { Target } from '../targets/target.ts'
import type { Times } from './fixed-rate-sender.ts'
import { percentile, type Sender } from './fixed-rate.ts'

const shareOfCapacity = 1 / 4
const seconds = 4

type Options = {
  bare: Target
  gatehouse: Target
  sender: Sender
  /** Requests per second that Gatehouse reached in this run. */
  capacity: Record<Mode, number>
  windows: number
}
type Measured = { p50: number; p99: number; first: number }

/** The latency of Gatehouse minus that of the bare proxy, both at a quarter of what Gatehouse can do. */
export async function measureAddedTime(options: Options): Promise<Figures> {
  const { bare, gatehouse, sender, capacity, windows } = options
  const rows = [['added time', 'rate', 'p50 ms', 'p99 ms', 'first token p99 ms']]
  const figures: Figures = {}
  for (const mode of modes) {
    const rate = { mode, perSecond: Math.round(capacity[mode] * shareOfCapacity), seconds }
    // The code for few requests at a time differs from that for many: the first window only warms up.
    const measured = { bare: [] as Measured[], gatehouse: [] as Measured[] }
    for (let window = 0; window <= windows; window++) {
      const ofBare = readTimes(await sender.send(bare, rate))
      const ofGatehouse = readTimes(await sender.send(gatehouse, rate))
      if (window === 0) continue
      measured.bare.push(ofBare)
      measured.gatehouse.push(ofGatehouse)
    }
    const [base, own] = [medianOf(measured.bare), medianOf(measured.gatehouse)]
    rows.push(toRow(`${mode}: bare proxy`, rate.perSecond, base))
    rows.push(toRow(`${mode}: Gatehouse`, rate.perSecond, own))
    Object.assign(figures, figuresOf(mode, base, own))
  }
  console.log(`\n${toTable(rows)}`)
  return figures
}

const readTimes = ({ first, whole }: Times): Measured => ({
  p50: percentile(whole, 0.5),
  p99: percentile(whole, 0.99),
  first: percentile(first, 0.99),
})

const medianOf = (windows: readonly Measured[]): Measured => ({
  p50: median(windows.map(({ p50 }) => p50)),
  p99: median(windows.map(({ p99 }) => p99)),
  first: median(windows.map(({ first }) => first)),
})

const toRow = (name: string, perSecond: number, { p50, p99, first }: Measured) => [
  name,
  `${perSecond}/s`,
  p50.toFixed(2),
  p99.toFixed(2),
  first.toFixed(2),
]

function figuresOf(mode: Mode, base: Measured, own: Measured): Figures {
  const added = own.p99 - base.p99
  return {
    [`${mode}P50`]: { value: own.p50 - base.p50 },
    [`${mode}P99`]: { value: added, holds: added <= 15 || own.p99 <= 3 * base.p99 },
    ...(mode === 'stream' && { firstTokenP99: { value: own.first - base.first } }),
  }
}
