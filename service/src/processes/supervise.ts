import cluster from 'node:cluster'

import { listen, reservePort } from '#http/listen.ts'
import type { Log } from '#platform/log.ts'
import { stopOnSignals } from '#platform/shutdown.ts'

import { type DividedSettings, divideSettings } from './divide-settings.ts'
import { type KeptProcess, keepRunning } from './keep-running.ts'
import { createMetricSums } from './sum-metrics.ts'
import { createSupervisorOperations } from './supervisor-operations.ts'

type SupervisedSettings = DividedSettings & {
  HOST: string
  OPERATIONS_HOST: string
  OPERATIONS_PORT: number
  UNREADY_SECONDS: number
  DRAIN_SECONDS: number
}

/**
 * Processes end their drain by themselves; one that has not is killed this long after the deadline. Orchestrators are told to
 * wait 15 seconds longer than the drain.
 */
const drainGraceMs = 12_000

const nowMs = () => performance.now()

/**
 * Starts `PROCESSES` processes that share a port, and restarts those that end. This process serves no callers: it answers on
 * the operations port for all of them, and passes signals on.
 *
 * The first process starts alone. If it cannot start, the settings are most likely wrong and every other process would fail the
 * same way, so this process ends too. Once it has served, processes are restarted whatever happens.
 */
export async function supervise<Settings extends SupervisedSettings>(settings: Settings, log: Log) {
  const { HOST: host, OPERATIONS_HOST, OPERATIONS_PORT } = settings
  // The settings contain keys as bytes, which JSON would not preserve.
  cluster.setupPrimary({ serialization: 'advanced' })
  const names = { host: 'HOST', port: 'PORT' }
  const reserved = await reservePort({ host, port: settings.PORT, settings: names })
  const sums = createMetricSums()
  const processes = Array.from({ length: settings.PROCESSES }, (_, index) => {
    const number = index + 1
    const own = divideSettings(settings, { number, port: reserved.port })
    return keepRunning({ place: { number, settings: own }, log, sums, nowMs })
  })
  const [first, ...others] = processes
  if (!first) return
  let isStopping = false
  let hasFailed = false
  const stopAll = async () => {
    isStopping = true
    hasFailed = await drainAll(processes, settings)
  }
  const operations = createSupervisorOperations({ processes, sums, isStopping: () => isStopping })
  const operationsAddress = await listen(operations, {
    host: OPERATIONS_HOST,
    port: OPERATIONS_PORT,
    settings: { host: 'OPERATIONS_HOST', port: 'OPERATIONS_PORT' },
  })
  // However this process ends, short of SIGKILL, the processes that it started end with it.
  process.on('exit', () => killAll(processes))
  stopOnSignals(
    [
      { name: 'processes', stop: stopAll },
      { name: 'operations', stop: async () => operations.close() },
    ],
    log,
    { hasFailed: () => hasFailed },
  )
  const started = await first.start(true)
  if (isStopping) return
  if (!('address' in started)) {
    if (started.isExplained) process.exit(1)
    throw new Error(`The first process ended ${started.how}, before it could serve.`)
  }
  const { address } = started
  await Promise.all(others.map((each) => each.start()))
  await reserved.release()
  log.event('supervising', {
    processes: processes.length,
    address,
    operations_address: operationsAddress,
  })
  process.send?.({ address, operationsAddress })
}

/** Returns whether a process failed to end cleanly. */
async function drainAll(processes: readonly KeptProcess[], settings: SupervisedSettings) {
  const drainMs = (settings.UNREADY_SECONDS + settings.DRAIN_SECONDS) * 1000
  const timer = setTimeout(() => killAll(processes), drainMs + drainGraceMs)
  const ends = await Promise.all(processes.map((each) => each.stop()))
  clearTimeout(timer)
  return ends.some((end) => end.hasFailed)
}

function killAll(processes: readonly KeptProcess[]) {
  for (const { kill } of processes) kill()
}
