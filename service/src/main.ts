import { createBoundedOutput, standardOutput, untilWritten } from '#platform/bounded-output.ts'
import { createLog, withoutSecrets } from '#platform/log.ts'
import { isSupervised } from '#processes/answer-supervisor.ts'
import { supervise } from '#processes/supervise.ts'

import { loadConfig } from './config.ts'

async function run() {
  // eslint-disable-next-line node/no-process-env
  const environment = process.env
  // The supervisor has read the settings, once for all its processes.
  const config = isSupervised() ? undefined : loadConfig(environment)
  if (config && config.PROCESSES > 1 && config.ROLES.includes('api')) {
    return supervise(config, createLog(config.LOG_LEVEL, createBoundedOutput(standardOutput())))
  }
  // Loaded only here, because a supervisor needs none of it and would keep it in memory.
  const { serve, serveSupervised } = await import('./serve.ts')
  return config ? serve(config, environment) : serveSupervised(environment)
}

/** Our own errors explain themselves. For any other error, such as a TypeError, the stack says where it came from. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'The process cannot start.'
  return error.constructor === Error ? error.message : (error.stack ?? error.message)
}

/** How long it may take to write the lines of a start that failed. */
const lastLinesMaxMs = 1000

try {
  await run()
} catch (error) {
  // Not logged as well: the operator reads the reason once, with any LOG_LEVEL.
  process.stderr.write(`gatehouse: ${withoutSecrets(reasonOf(error))}\n`)
  await untilWritten(standardOutput(), lastLinesMaxMs)
  process.exit(1)
}
