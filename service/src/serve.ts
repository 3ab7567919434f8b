import { flushCompileCache } from 'node:module'

import { stopOnSignals } from '#platform/shutdown.ts'
import { answerSupervisor, receivePlace, reportUp } from '#processes/answer-supervisor.ts'

import { startApi } from './api.ts'
import { assemble, type House } from './assemble.ts'
import { checkStart } from './check-start.ts'
import type { Config } from './config.ts'
import { startWorker } from './worker.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Runs the roles of a single process. */
export async function serve(config: Config, environment: Environment) {
  const started = await checkStart(config)
  const house = assemble(config, { environment, started })
  const api = config.ROLES.includes('api') ? await startApi(house) : undefined
  const worker = config.ROLES.includes('worker') ? startWorker(house) : undefined
  const warmUp = warmUpSoon(house)
  stopOnSignals(stepsOf(house, api, worker, warmUp), house.log)
  keepCompiledCode()
  // Scripts that start us learn our addresses without reading the log.
  process.send?.({ address: api?.address, operationsAddress: api?.operationsAddress })
}

/** Runs one of several processes. Its supervisor sends it the settings, and asks it for what operators want to see. */
export async function serveSupervised(environment: Environment) {
  const { number, settings: config } = await receivePlace<Config>()
  const started = await checkStart(config)
  const house = assemble(config, { environment, processNumber: number, started })
  const api = await startApi(house, undefined, async ({ metrics, ...answers }) => {
    answerSupervisor({ ...answers, metrics: () => metrics.registry.getMetricsAsJSON() })
    return { close: async () => undefined }
  })
  const worker = config.ROLES.includes('worker') ? startWorker(house) : undefined
  const warmUp = warmUpSoon(house)
  stopOnSignals(stepsOf(house, api, worker, warmUp), house.log, { isSupervised: true })
  keepCompiledCode()
  reportUp(api.address)
}

/** Work that makes later calls quicker, and for which a start does not wait. */
async function warmUp({ config, hints, inference }: House) {
  hints.subscribe()
  if (config.ROLES.includes('api')) await inference.warm()
}

/** Starts after the probes and the first calls, which need none of it. */
const warmUpMs = 1000

const warmUpSoon = (house: House) =>
  setTimeout(() => {
    warmUp(house).catch((error: unknown) => house.log.problem('warm_up_failed', error))
  }, warmUpMs).unref()

/** Node does this by itself when a process exits, but a process that is killed would leave nothing for the next start. */
const keepCompiledCode = () => flushCompileCache()

type Api = Awaited<ReturnType<typeof startApi>>
type Worker = ReturnType<typeof startWorker>

const stepsOf = (
  house: House,
  api: Api | undefined,
  worker: Worker | undefined,
  warmUp: NodeJS.Timeout,
) => [
  { name: 'warm-up', stop: async () => clearTimeout(warmUp) },
  { name: 'api', stop: async () => api?.drain() },
  { name: 'worker', stop: async () => worker?.stop() },
  { name: 'house', stop: house.stop },
]
