import type { Mode } from '../chat-call.ts'
import type { Target } from '../targets/target.ts'
import type { Sender } from './fixed-rate.ts'
import { timesOf, type WindowTimes } from './window-times.ts'

const shareOfCapacity = 1 / 4
const seconds = 4

/** Far from full, so that a call waits for its own work and not for that of others. */
export const quarterOf = (capacity: number) => Math.round(capacity * shareOfCapacity)

type Options = {
  sender: Sender
  mode: Mode
  perSecond: number
  windows: number
  /** Whether the targets have just been measured at this rate. */
  isWarm?: boolean
}

/** What calls at a fixed rate take in each window. Targets take turns, so that a disturbance affects all of them. */
export async function measureTimes(
  targets: readonly Target[],
  { sender, mode, perSecond, windows, isWarm = false }: Options,
): Promise<WindowTimes[][]> {
  const measured = targets.map((): WindowTimes[] => [])
  // The code for few requests at a time differs from that for many: the first window only warms up.
  for (let window = isWarm ? 1 : 0; window <= windows; window++) {
    for (const [index, target] of targets.entries()) {
      const times = timesOf(await sender.send(target, { mode, perSecond, seconds }))
      if (window > 0) measured[index]?.push(times)
    }
  }
  return measured
}
