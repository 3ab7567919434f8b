import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { useBuiltProgram } from '@gatehouse/tools/program'
import { stopProcess } from '@gatehouse/tools/service-process'
import { stackModels } from '@gatehouse/tools/stack-models'
import { createTenants, startStack } from '@gatehouse/tools/start-stack'

import type { OwnServers } from '../servers/own-servers.ts'
import { pidOf } from './child.ts'
import type { Target } from './target.ts'

type GatehouseOptions = {
  upstream: string
  /** Without them, the usual servers of the machine. */
  servers?: OwnServers
  environment?: Record<string, string>
  processes?: number
  /** Allows thousands of open streams that may be silent for minutes, instead of the default numbers. */
  hasManyStreams?: boolean
  /** Each may send 15 requests per second. The usual number may send more than one machine can handle. */
  organizations?: number
}

/**
 * Gatehouse with all features and the real limits. A scripted scorer moderates, unless the environment names another. Only the deadline for Redis is longer than the default: a fully
 * loaded machine misses 40 ms, and the limits would then be counted in memory.
 */
export async function startGatehouse(options: GatehouseOptions) {
  const { upstream, servers, environment, processes = 1, organizations = 400 } = options
  const { hasManyStreams = false } = options
  await useBuiltProgram()
  const stack = await startStack({
    hasLimits: true,
    processes,
    models: () => (hasManyStreams ? modelsForManyStreams(upstream) : usualModels(upstream)),
    environment: {
      LOG_LEVEL: 'info',
      REDIS_DEADLINE_MS: '1000',
      ...(hasManyStreams && { CONNECTIONS_MAX: '20000' }),
      ...environment,
    },
    ...(servers && { server: servers.postgres.url, redis: servers.redis.url }),
  })
  try {
    const tenants = await createTenants(stack.service, organizations)
    const logs = stack.apis.map((_, index) => join(stack.folder, `api-${index + 1}.log`))
    return {
      name: 'Gatehouse',
      url: stack.description.base_url,
      urls: stack.description.base_urls,
      headers: {},
      keys: tenants.map(({ project_key }) => project_key),
      pids: stack.apis.map(({ child }) => pidOf(child)),
      workerPid: pidOf(stack.worker.child),
      children: stack.apis.map(({ child }) => child),
      database: stack.database,
      service: stack.service,
      /** A further worker, which ends with the others. */
      async startWorker(name: string) {
        const { child } = await stack.startWorker(name)
        return { child, readLog: () => readFile(join(stack.folder, `${name}.log`), 'utf8') }
      },
      stopWorker: () => stopProcess(stack.worker.child),
      /** How often it took Redis for away, since its start. */
      countRedisLosses: () => countRedisLosses(logs),
      caveat: () => findCaveat(logs),
      stop: stack.stop,
    } satisfies Target & Record<string, unknown>
  } catch (error) {
    await stack.stop()
    throw error
  }
}
export type Gatehouse = Awaited<ReturnType<typeof startGatehouse>>

const usualModels = (upstream: string) => stackModels({ scripted: upstream })

function modelsForManyStreams(upstream: string) {
  const models = usualModels(upstream)
  const upstreams = Object.entries(models.upstreams).map(
    ([name, entry]) => [name, { ...entry, connections: 10_000, idle_timeout_ms: 600_000 }] as const,
  )
  return { ...models, upstreams: Object.fromEntries(upstreams) }
}

async function countRedisLosses(logFiles: readonly string[]): Promise<number> {
  const texts = await Promise.all(logFiles.map((file) => readFile(file, 'utf8')))
  return texts.join('').split('"event":"limits_counted_locally"').length - 1
}

/** Without Redis, Gatehouse counts limits in memory, which is not the work to be measured. */
async function findCaveat(logFiles: readonly string[]): Promise<string | undefined> {
  const times = await countRedisLosses(logFiles)
  if (times === 0) return undefined
  return `Not comparable: Gatehouse lost Redis ${times} times and counted limits in memory.`
}
