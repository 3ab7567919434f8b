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
  // Not loaded above: a supervisor needs none of it, and would hold its memory.
  const { serve, serveSupervised } = await import('./serve.ts')
  return config ? serve(config, environment) : serveSupervised(environment)
}

/** Our own errors explain themselves; of any other, such as a TypeError, the stack says where it came from. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'The process cannot start.'
  return error.constructor === Error ? error.message : (error.stack ?? error.message)
}

/** How long the lines of a start that failed may take. */
const lastLinesMaxMs = 1000

try {
  await run()
} catch (error) {
  // Not in the log as well: whoever starts a process reads the reason once, whatever LOG_LEVEL is.
  process.stderr.write(`gatehouse: ${withoutSecrets(reasonOf(error))}\n`)
  await untilWritten(standardOutput(), lastLinesMaxMs)
  process.exit(1)
}
