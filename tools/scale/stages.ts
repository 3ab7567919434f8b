import type { Costs } from './costs.ts'

/** The call that the stages are computed for: what people do with models, rather than what a benchmark does. */
export const call = { seconds: 8, frames: 300 } as const
const measuredFrames = 30

/** How busy each part may be, so that it stands a peak and the loss of a neighbour. */
const busy = { service: 0.6, worker: 0.6, postgres: 0.5, redis: 0.4 } as const

/** Cores of one PostgreSQL primary; Redis executes commands on one. */
export const primaryCores = 16
/** Idle ones cost memory and snapshots; beyond this a primary needs fewer per process, or a pooler. */
export const connectionsMax = 1000
/** Of one process while accounts are not locked: the pool, changes, and credits with events (docs/operations.md). */
export const connectionsPerProcess = 16
/** The largest load of one cell: what one deploy, one failure and one load test cover. */
export const cellRequests = 50_000

/** The goal of `./dev bench idle`: 5,000 streams in 250 MB. */
const goalKilobytesPerStream = (250 * 1024) / 5000

export const kilobytesOf = ({ kilobytesPerStream }: Costs) =>
  kilobytesPerStream ?? goalKilobytesPerStream

/** The goals of `./dev bench cpu`: what a call takes the worker, as a multiple of the bare proxy. */
const goalOfWorker = { plain: 0.5, stream: 0.3 } as const

export const workerMicroseconds = (costs: Costs, mode: 'plain' | 'stream') =>
  costs[mode].worker ?? costs[mode].bare * goalOfWorker[mode]

export const loads = [10, 100, 1000, 10_000, 50_000, 1_000_000] as const

export type Stage = {
  perSecond: number
  cells: number
  inFlight: number
  serviceCores: number
  processes: number
  workerCores: number
  workers: number
  postgresCores: number
  primaries: number
  redisCores: number
  redisPrimaries: number
  connectionsPerPrimary: number
  memoryGigabytes: number
  rowsPerDay: number
}

/** CPU time of one such call, in microseconds: the measured stream, and the frames it has more. */
export const callMicroseconds = (costs: Costs) =>
  costs.stream.service + (call.frames - measuredFrames) * costs.microsecondsPerFrame

/** What a load needs. Cells are alike, so a stage of several is a multiple of one. */
export function stageOf(perSecond: number, costs: Costs): Stage {
  const cells = Math.ceil(perSecond / cellRequests)
  const inCell = perSecond / cells
  const cores = (microseconds: number) => (inCell * microseconds) / 1e6
  const serviceCores = cores(callMicroseconds(costs))
  const workerCores = cores(workerMicroseconds(costs, 'stream'))
  const postgresCores = cores(costs.stream.postgres)
  const redisCores = cores(costs.stream.redis)
  const processes = Math.ceil(serviceCores / busy.service)
  const workers = Math.ceil(workerCores / busy.worker)
  const primaries = Math.ceil(postgresCores / (primaryCores * busy.postgres))
  const inFlight = inCell * call.seconds
  const ofProcesses = (processes + workers) * costs.megabytesPerProcess
  const megabytes = ofProcesses + (inFlight * kilobytesOf(costs)) / 1024
  return {
    perSecond,
    cells,
    inFlight: inFlight * cells,
    serviceCores: serviceCores * cells,
    processes: processes * cells,
    workerCores: workerCores * cells,
    workers: workers * cells,
    postgresCores: postgresCores * cells,
    primaries: primaries * cells,
    redisCores: redisCores * cells,
    redisPrimaries: Math.ceil(redisCores / busy.redis) * cells,
    connectionsPerPrimary: processes * connectionsPerProcess,
    memoryGigabytes: (megabytes * cells) / 1024,
    rowsPerDay: perSecond * 86_400,
  }
}
