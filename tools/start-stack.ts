import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'

import { startLlamaUpstream } from './llama-upstream/start.ts'
import { startScriptedUpstream } from './scripted-upstream/server.ts'
import { type ApiProcess, startProcess, stopProcess, untilReady } from './service-process.ts'
import { stackModels, type UpstreamUrls } from './stack-models.ts'
import { createMigratedDatabase, redisUrl } from './throwaway-database.ts'

const root = fileURLToPath(new URL('../', import.meta.url))

export type StackOptions = {
  processes?: number
  /** null: the stack runs without Redis, by polling only. */
  redis?: string | null
  /** The PostgreSQL server in which the stack's database is made, instead of the usual one. */
  server?: string
  /** Tests ask more than administrators do: without this, administration calls are hardly limited. */
  hasLimits?: boolean
  /** What an API process runs; a test may have an entry of its own. */
  entry?: string
  /** Also serves the tiny real model. */
  hasLlama?: boolean
  /** The model catalogue, instead of the usual one; null: none, and processes start faster. */
  models?: ((urls: UpstreamUrls) => object) | null
  /** Further variables for every process of the service. */
  environment?: Record<string, string>
}

export type NewOrganization = { organization_id: string; project_id: string; admin_key: string }

/** A complete Gatehouse on fresh data. Whatever happens while it starts, nothing is left behind. */
export async function startStack({
  processes = 1,
  redis = redisUrl,
  server,
  entry = 'main.ts',
  hasLimits = false,
  hasLlama = false,
  models = stackModels,
  environment = {},
}: StackOptions = {}) {
  const cleanup: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const undo of cleanup.splice(0).toReversed()) await undo().catch(() => undefined)
  }
  try {
    const database = await createMigratedDatabase('stack', server)
    cleanup.push(() => database[Symbol.asyncDispose]())
    const folder = await makeFolder()
    cleanup.push(() => rm(folder, { recursive: true, force: true }))
    const upstreams = await startUpstreams(hasLlama)
    cleanup.push(upstreams.stop)
    const modelsFile = join(folder, 'models.json')
    if (models) await writeFile(modelsFile, JSON.stringify(models(upstreams.urls), null, 2))
    const settings = serviceSettings({
      ...{ databaseUrl: database.url, redis, folder, name: database.name },
      modelsFile: models ? modelsFile : '',
    })
    const service = { ...settings, ...(hasLimits ? {} : generous), ...environment }
    /** `further` are variables for this process alone. */
    const start = async (
      role: 'api' | 'worker',
      name: string,
      further: Record<string, string> = {},
    ) => {
      const own = { ...service, ...further, ROLES: role }
      const file = role === 'api' ? entry : 'main.ts'
      const started = await startProcess(file, own, join(folder, `${name}.log`))
      cleanup.push(() => stopProcess(started.child))
      return started
    }
    const [organization, worker, ...apis] = await allOrNone([
      createOrganization(service, 'Example Ltd'),
      start('worker', 'worker'),
      ...Array.from({ length: processes }, (_, index) => start('api', `api-${index + 1}`)),
    ])

    await Promise.all(apis.map(untilReady))
    const description = await describe(apis, organization, upstreams.urls.scripted)
    return {
      ...{ description, apis, worker, database, folder, service, stop, modelsFile },
      ...{ startApi: start.bind(null, 'api'), startWorker: start.bind(null, 'worker') },
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** What a script needs to use the stack; `--json` prints it. */
async function describe(
  apis: readonly ApiProcess[],
  organization: NewOrganization,
  upstreamUrl: string,
) {
  const [first] = apis
  if (!first) throw new Error('A stack needs at least one API process.')
  return {
    base_url: first.baseUrl,
    base_urls: apis.map(({ baseUrl }) => baseUrl),
    metrics_urls: apis.map(({ metricsUrl }) => metricsUrl),
    admin_key: organization.admin_key,
    project_key: await createProjectKey(first.baseUrl, organization),
    organization_id: organization.organization_id,
    project_id: organization.project_id,
    upstream_url: upstreamUrl,
  }
}

/** Waits for all even if one fails, so that nothing is still starting when the rest is cleaned up. */
async function allOrNone<const T extends readonly Promise<unknown>[]>(started: T) {
  await Promise.allSettled(started)
  return Promise.all(started)
}

export type Stack = Awaited<ReturnType<typeof startStack>>

const generous = {
  ADMIN_REQUESTS_PER_MINUTE: '1000000',
  ADMIN_REQUESTS_PER_MINUTE_ORGANIZATION: '1000000',
  ADMIN_CONCURRENT_REQUESTS: '256',
  // Tests fill the machine: what is late then is not lost.
  REDIS_DEADLINE_MS: '1000',
}

async function makeFolder(): Promise<string> {
  const scratch = join(root, '.scratch')
  await mkdir(scratch, { recursive: true })
  return mkdtemp(join(scratch, 'stack-'))
}

async function startUpstreams(hasLlama: boolean) {
  const scripted = await startScriptedUpstream()
  const llama = hasLlama ? await startLlamaUpstream() : undefined
  return {
    urls: { scripted: scripted.url, ...(llama && { llama: llama.url }) },
    stop: () => Promise.all([scripted.stop(), llama?.stop()]),
  }
}

type Place = {
  databaseUrl: string
  redis: string | null
  folder: string
  name: string
  modelsFile: string
}

function serviceSettings(place: Place): Record<string, string> {
  const { databaseUrl, redis, folder, name, modelsFile } = place
  return {
    MODELS_FILE: modelsFile,
    UPSTREAM_KEY: 'the-key-of-the-scripted-upstream',
    PATH: process.env['PATH'] ?? '',
    DATABASE_URL: databaseUrl,
    ...(redis && { REDIS_URL: redis, REDIS_NAMESPACE: name }),
    MASTER_KEYS: `1:${randomBytes(32).toString('base64')}`,
    HOST: '127.0.0.1',
    PORT: '0',
    OPERATIONS_PORT: '0',
    STATE_DIRECTORY: join(folder, 'state'),
    UNREADY_SECONDS: '0',
    DRAIN_SECONDS: '20',
    FREE_REQUESTS_PER_DAY: '1000',
  }
}

/** The operator's command, as an operator runs it. */
export async function runOperator(service: Record<string, string>, args: readonly string[]) {
  const command = [join(root, 'service/src/operator.ts'), 'organizations', ...args, '--json']
  const { stdout } = await promisify(execFile)(process.execPath, command, { env: service })
  return JSON.parse(stdout) as unknown
}

/** `usd`: the credits it begins with. */
export async function createOrganization(
  service: Record<string, string>,
  name: string,
  usd = '1000',
) {
  return (await runOperator(service, ['create', '--name', name, '--usd', usd])) as NewOrganization
}

export type Tenant = { organization_id: string; project_key: string }

/** Organizations of the highest tier, each with a project key: together they may ask for any load. */
export async function createTenants(
  service: Record<string, string>,
  count: number,
): Promise<Tenant[]> {
  const command = [join(root, 'service/src/testing/many-tenants.ts'), String(count)]
  const { stdout } = await promisify(execFile)(process.execPath, command, {
    env: service,
    maxBuffer: 16 * 1024 * 1024,
  })
  return JSON.parse(stdout) as Tenant[]
}

async function createProjectKey(baseUrl: string, organization: NewOrganization): Promise<string> {
  const client = createClient({ baseUrl, credential: organization.admin_key })
  const key = await client.call(createProjectApiKey, {
    params: { project_id: organization.project_id },
    body: { name: 'First project key' },
  })
  return key.value
}
