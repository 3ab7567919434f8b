import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { stackModels } from '@gatehouse/tools/stack-models'
import { createTenants, startStack } from '@gatehouse/tools/start-stack'

import { pidOf } from './child.ts'
import type { Target } from './target.ts'

/** Each may send 15 requests per second; together they may send more than one machine can handle. */
const organizations = 400

/**
 * Gatehouse with all features and the real limits. Only the deadline for Redis is longer than the default: a fully
 * loaded machine misses 40 ms, and the limits would then be counted in memory.
 */
export async function startGatehouse(
  upstream: string,
  environment: Record<string, string> = {},
): Promise<Target> {
  const stack = await startStack({
    hasLimits: true,
    models: () => stackModels({ scripted: upstream }),
    environment: { LOG_LEVEL: 'info', REDIS_DEADLINE_MS: '1000', ...environment },
  })
  try {
    const tenants = await createTenants(stack.service, organizations)
    return {
      name: 'Gatehouse',
      url: stack.description.base_url,
      headers: {},
      keys: tenants.map(({ project_key }) => project_key),
      pids: stack.apis.map(({ child }) => pidOf(child)),
      caveat: () => findCaveat(join(stack.folder, 'api-1.log')),
      stop: stack.stop,
    }
  } catch (error) {
    await stack.stop()
    throw error
  }
}

/** Without Redis, Gatehouse counts limits in memory, which is not the work to be measured. */
async function findCaveat(logFile: string): Promise<string | undefined> {
  const times =
    (await readFile(logFile, 'utf8')).split('"event":"limits_counted_locally"').length - 1
  if (times === 0) return undefined
  return `Not comparable: Gatehouse lost Redis ${times} times and counted limits in memory.`
}
