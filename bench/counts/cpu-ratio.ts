import { type Mode, modes } from '../chat-call.ts'
import { createCpuMeter } from '../process-usage.ts'
import type { Target } from '../targets/target.ts'
import { sendCalls } from './send-calls.ts'

const callsInWindow = 400
const atOnce = 64
const warmUpCalls = 2000
const windowsLeast = 4
const windowsMost = 16

type Options = { bare: Target; gatehouse: Target; limits: Record<Mode, number> }

/**
 * The CPU time of a call as a multiple of the bare proxy's, by the least windows of both: neighbours can only add to it. As long
 * as a ratio exceeds its limit, further windows are measured, because a shared machine may have disturbed all of them.
 */
export async function measureCpuRatios({ bare, gatehouse, limits }: Options) {
  const ratios = { plain: NaN, stream: NaN }
  for (const mode of modes) {
    for (const target of [bare, gatehouse]) await sendCalls(target, mode, warmUpCalls, atOnce)
  }
  for (const mode of modes) {
    const least = { bare: Infinity, gatehouse: Infinity }
    for (let window = 0; window < windowsMost; window++) {
      least.bare = Math.min(least.bare, await measureWindow(bare, mode))
      least.gatehouse = Math.min(least.gatehouse, await measureWindow(gatehouse, mode))
      ratios[mode] = least.gatehouse / least.bare
      if (window + 1 >= windowsLeast && ratios[mode] <= limits[mode]) break
    }
  }
  return ratios
}

async function measureWindow(target: Target, mode: Mode): Promise<number> {
  const cpu = createCpuMeter(target.pids)
  const before = await cpu()
  await sendCalls(target, mode, callsInWindow, atOnce)
  return ((await cpu()) - before) / callsInWindow
}
