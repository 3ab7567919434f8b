import { setFlagsFromString } from 'node:v8'

import { standardOutput, untilWritten } from '#platform/bounded-output.ts'
import { withoutSecrets } from '#platform/log.ts'
import { findMismatch, readSchemaState } from '#platform/migrations.ts'
import { stopOnSignals } from '#platform/shutdown.ts'

import { startApi } from './api.ts'
import { assemble, type House } from './assemble.ts'
import { type Config, loadConfig } from './config.ts'
import { startWorker } from './worker.ts'

// A belt for our own patterns: one that backtracks too much is finished by the linear engine.
setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks')

async function start(config: Config, environment: NodeJS.ProcessEnv) {
  const house = assemble(config, { environment })
  await refuseForeignSchema(house)
  const api = config.ROLES.includes('api') ? await startApi(house) : undefined
  const worker = config.ROLES.includes('worker') ? startWorker(house) : undefined
  stopOnSignals(
    [
      { name: 'api', stop: async () => api?.drain() },
      { name: 'worker', stop: async () => worker?.stop() },
      { name: 'house', stop: house.stop },
    ],
    house.log,
  )
  // Scripts that start us learn our addresses without reading the log.
  process.send?.({ address: api?.address, operationsAddress: api?.operationsAddress })
}

/** A database that is away is no reason not to start: readiness checks its schema when it is back. */
async function refuseForeignSchema({ db }: House) {
  const state = await readSchemaState(db).catch(() => undefined)
  const mismatch = state && findMismatch(state)
  if (mismatch) throw new Error(mismatch)
}

/** Our own errors explain themselves; of any other, such as a TypeError, the stack says where it came from. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'The process cannot start.'
  return error.constructor === Error ? error.message : (error.stack ?? error.message)
}

/** How long the lines of a start that failed may take. */
const lastLinesMaxMs = 1000

try {
  // eslint-disable-next-line node/no-process-env
  const environment = process.env
  await start(loadConfig(environment), environment)
} catch (error) {
  // Not in the log as well: whoever starts a process reads the reason once, whatever LOG_LEVEL is.
  process.stderr.write(`gatehouse: ${withoutSecrets(reasonOf(error))}\n`)
  await untilWritten(standardOutput(), lastLinesMaxMs)
  process.exit(1)
}
