import type { Mode } from './chat-call.ts'
import type { Percentiles, Sender } from './fixed-rate.ts'
import { fullLoad } from './full-load.ts'
import { cpuMicroseconds, memoryMegabytes } from './process-usage.ts'
import type { Target } from './target.ts'

/** How long and how hard; every target gets the same. */
export type Plan = {
  windows: number
  warmUpSeconds: number
  loadSeconds: number
  rateSeconds: number
  connections: number
  /** All targets can sustain it with room to spare. */
  perSecond: Record<Mode, number>
}

/** What one target did in one window. */
export type Window = {
  perSecond: number
  cpuMicroseconds: number
  upstreamCpuMicroseconds: number
  memoryMegabytes: number
  times: Percentiles
}

export type Bench = { plan: Plan; upstream: Target; sender: Sender; scratch: string }

/** Its code is compiled and its connections are open when it counts. */
export async function warmUp(target: Target, mode: Mode, { plan, sender, scratch }: Bench) {
  const { connections, warmUpSeconds: seconds, perSecond } = plan
  await fullLoad(target, { mode, connections, seconds, scratch })
  await sender.send(target, { mode, perSecond: perSecond[mode], seconds: 1 })
}

/** Full load for the throughput and its cost, then a fixed rate for the time an answer takes. */
export async function measureWindow(target: Target, mode: Mode, bench: Bench): Promise<Window> {
  const { plan, upstream, sender, scratch } = bench
  const { connections, loadSeconds: seconds, perSecond } = plan
  const readCpu = () =>
    Promise.all([cpuMicroseconds(target.pids), cpuMicroseconds(upstream.pids)] as const)
  const askedBefore = await countAsked(upstream)
  const before = await readCpu()
  const { requests, ...load } = await fullLoad(target, { mode, connections, seconds, scratch })
  const after = await readCpu()
  const asked = (await countAsked(upstream)) - askedBefore
  if (asked < requests) {
    throw new Error(`${target.name} gave ${requests} answers but asked only ${asked} times.`)
  }
  const memory = await memoryMegabytes(target.pids)
  const rate = { mode, perSecond: perSecond[mode], seconds: plan.rateSeconds }
  return {
    perSecond: requests / load.seconds,
    cpuMicroseconds: (after[0] - before[0]) / requests,
    upstreamCpuMicroseconds: (after[1] - before[1]) / requests,
    memoryMegabytes: memory,
    times: await sender.send(target, rate),
  }
}

async function countAsked({ url }: Target): Promise<number> {
  const { requests } = (await (await fetch(`${url}/control/state`)).json()) as { requests: number }
  return requests
}
