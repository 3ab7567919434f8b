import type { Mode } from './chat-call.ts'
import type { Percentiles, Sender } from './fixed-rate.ts'
import { fullLoad } from './full-load.ts'
import { cpuMicroseconds, memoryMegabytes } from './process-usage.ts'
import type { Target } from './targets/target.ts'

/** The durations and loads of a run, the same for every target. */
export type Plan = {
  windows: number
  warmUpSeconds: number
  loadSeconds: number
  rateSeconds: number
  connections: number
  /** Low enough for all targets to sustain easily. */
  perSecond: Record<Mode, number>
}

/** The measurements of one target in one window. */
export type Window = {
  perSecond: number
  cpuMicroseconds: number
  upstreamCpuMicroseconds: number
  memoryMegabytes: number
  times: Percentiles
}

export type Bench = { plan: Plan; upstream: Target; sender: Sender; scratch: string }

/** Loads a target, so that its code is compiled and its connections are open before it is measured. */
export async function warmUp(target: Target, mode: Mode, { plan, sender, scratch }: Bench) {
  const { connections, warmUpSeconds: seconds, perSecond } = plan
  await fullLoad(target, { mode, connections, seconds, scratch })
  await sender.send(target, { mode, perSecond: perSecond[mode], seconds: 1 })
}

/** Full load for throughput and CPU time, then a fixed rate for latency. */
export async function measureWindow(target: Target, mode: Mode, bench: Bench): Promise<Window> {
  const { plan, upstream, sender, scratch } = bench
  const { connections, loadSeconds: seconds, perSecond } = plan
  const readCpu = () =>
    Promise.all([cpuMicroseconds(target.pids), cpuMicroseconds(upstream.pids)] as const)
  const requestsBefore = await countRequests(upstream)
  const before = await readCpu()
  const { requests, ...load } = await fullLoad(target, { mode, connections, seconds, scratch })
  const after = await readCpu()
  const forwarded = (await countRequests(upstream)) - requestsBefore
  if (forwarded < requests) {
    throw new Error(`${target.name} gave ${requests} answers for ${forwarded} upstream requests.`)
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

async function countRequests({ url }: Target): Promise<number> {
  const { requests } = (await (await fetch(`${url}/control/state`)).json()) as { requests: number }
  return requests
}
