import { setTimeout as sleep } from 'node:timers/promises'

import type { Mode } from '../chat-call.ts'
import { type FullLoad, prepareLoad, warmUp } from '../full-load.ts'
import { type CpuMeter, createCpuMeter, memoryMegabytes } from '../process-usage.ts'
import type { OwnServers } from '../servers/own-servers.ts'
import type { Target } from '../targets/target.ts'

export type CpuPlan = { windows: number; warmUpRequests: number }

const connections = 32
const windowSeconds = 2
/** Calls that wrk cuts off at the end of a window have been settled by then. */
const settlingMs = 200
/** A worker that takes less than a tenth of a core is done with the calls. */
const idleShare = 0.1
const idleCheckMs = 100
const idleChecksMax = 50

/** What one request cost in one window, in microseconds of CPU time. */
export type Window = {
  perSecond: number
  service: number
  /** 0 for a target without a worker. */
  worker: number
  postgres: number
  redis: number
  upstream: number
}
export type Result = { name: string; windows: Window[]; memoryMegabytes: number }

type Meters = Record<'postgres' | 'redis' | 'upstream', CpuMeter>
type Loaded = {
  target: Target
  mode: Mode
  load: FullLoad
  service: CpuMeter
  worker: CpuMeter
}

export type CpuBench = {
  plan: CpuPlan
  upstream: Target
  targets: readonly Target[]
  servers: OwnServers
  folder: string
}

/** Targets take turns, so that a disturbance of the machine affects all of them. */
export async function measureCpu(bench: CpuBench, modes: readonly Mode[]) {
  const { plan, upstream, targets, servers, folder } = bench
  const meters: Meters = {
    postgres: createCpuMeter(servers.postgres.pids),
    redis: createCpuMeter(servers.redis.pids),
    upstream: createCpuMeter(upstream.pids),
  }
  const loaded: Loaded[] = []
  // Both modes are warmed up before either is measured, or the first would run with colder code.
  for (const target of targets) {
    console.log(`Warming up ${target.name} with ${plan.warmUpRequests} requests of each kind`)
    for (const mode of modes) {
      const load = await prepareLoad(target, { mode, connections, folder })
      await warmUp(load, plan.warmUpRequests)
      const service = createCpuMeter(target.pids)
      const worker = createCpuMeter(target.workerPid === undefined ? [] : [target.workerPid])
      loaded.push({ target, mode, load, service, worker })
    }
  }
  const results = new Map<Mode, Result[]>()
  for (const mode of modes) {
    const inMode = loaded.filter((one) => one.mode === mode)
    const windows = inMode.map((): Window[] => [])
    for (let number = 0; number < plan.windows; number++) {
      for (const [index, one] of inMode.entries()) {
        windows[index]?.push(await measureWindow(one, meters, upstream))
      }
    }
    results.set(mode, await Promise.all(inMode.map((one, index) => toResult(one, windows[index]))))
  }
  return results
}

const toResult = async ({ target }: Loaded, windows: Window[] = []): Promise<Result> => ({
  name: target.name,
  windows,
  memoryMegabytes: await memoryMegabytes(target.pids),
})

async function measureWindow(one: Loaded, meters: Meters, upstream: Target): Promise<Window> {
  const read = () =>
    Promise.all([one.service(), one.worker(), meters.postgres(), meters.redis(), meters.upstream()])
  const requestsBefore = await countRequests(upstream)
  const before = await read()
  const { requests, seconds } = await one.load(windowSeconds)
  await sleep(settlingMs)
  await untilIdle(one.worker)
  const after = await read()
  const forwarded = (await countRequests(upstream)) - requestsBefore
  if (forwarded < requests) {
    const { name } = one.target
    throw new Error(`${name} gave ${requests} answers for ${forwarded} upstream requests.`)
  }
  // Calls that were cut off have cost time too, and the target cannot have more of them than connections.
  const calls = Math.min(forwarded, requests + connections)
  const [service = 0, worker = 0, postgres = 0, redis = 0, ofUpstream = 0] = after.map(
    (microseconds, index) => (microseconds - (before[index] ?? 0)) / calls,
  )
  const perSecond = requests / seconds
  return { perSecond, service, worker, postgres, redis, upstream: ofUpstream }
}

/** What the worker still has to do for the calls of a window is part of their cost, also when the load has kept it waiting. */
async function untilIdle(worker: CpuMeter) {
  let [before, checks] = [await worker(), 0]
  for (; checks < idleChecksMax; checks++) {
    await sleep(idleCheckMs)
    const now = await worker()
    if (now - before < idleCheckMs * 1000 * idleShare) return
    before = now
  }
}

async function countRequests({ url }: Target): Promise<number> {
  const { requests } = (await (await fetch(`${url}/control/state`)).json()) as { requests: number }
  return requests
}
