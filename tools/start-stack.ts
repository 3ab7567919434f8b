import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'

import { startLlamaUpstream, whyNoLlama } from './llama-upstream/start.ts'
import { programFile } from './program.ts'
import { runGatehouse, runScript } from './run-script.ts'
import { stackModeration } from './scripted-moderation.ts'
import { startScriptedUpstream } from './scripted-upstream/server.ts'
import { type ApiProcess, startProcess, stopProcess, untilReady } from './service-process.ts'
import { repositoryRoot as root } from './source-files.ts'
import { stackModels, type UpstreamUrls } from './stack-models.ts'
import { copyDatabase, createMigratedDatabase, redisUrl } from './throwaway-database.ts'
import { removeRedisKeys } from './throwaway-redis.ts'

export type StackOptions = {
  processes?: number
  /** null: the stack runs without Redis, by polling only. */
  redis?: string | null
  /** The PostgreSQL server in which the stack's database is made, instead of the usual one. */
  server?: string
  /** A migrated database of the usual server, of which the stack's is a copy. */
  template?: string
  /** false: administration calls are hardly limited, because tests make more of them than administrators do. */
  hasLimits?: boolean
  /** What the first organization has paid, in USD, which decides its tier; without it the tier is free. */
  paidUsd?: string
  /** The program of the tests that an API process runs, instead of the command `gatehouse`. */
  program?: string
  /** Also serves the tiny real model. */
  hasLlama?: boolean
  /** The model catalogue, instead of the usual one; null: none, and processes start faster. */
  models?: ((urls: UpstreamUrls) => object) | null
  /** Further variables for every process of the service. */
  environment?: Record<string, string>
  /** Ends the start at once; what was started by then is killed, and startStack rejects with the signal's reason. */
  signal?: AbortSignal
}

export type NewOrganization = { organization_id: string; project_id: string; admin_key: string }

/** Undoes one step of the start; the signal is for processes. */
type Undo = (signal?: NodeJS.Signals) => Promise<unknown>

/** A complete Gatehouse on fresh data. When a step of the start fails, everything before it is undone. */
export async function startStack(options: StackOptions = {}) {
  const reason = options.hasLlama ? whyNoLlama() : undefined
  if (reason !== undefined) throw new Error(reason)
  const { signal } = options
  const start: Start = { cleanup: [], leftovers: [], failure: new AbortController() }
  const onAbort = () => start.failure.abort(signal?.reason)
  signal?.addEventListener('abort', onAbort)
  try {
    signal?.throwIfAborted()
    const parts = await startParts(options, start)
    start.failure.signal.throwIfAborted()
    return { ...parts, leftovers: start.leftovers, stop: () => undoAll(start) }
  } catch (error) {
    // Nothing has been served yet, so there is nothing to drain.
    await undoAll(start, 'SIGKILL')
    for (const leftover of start.leftovers) console.error(`stack: ${String(leftover)}`)
    throw error
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
}

type Start = {
  cleanup: Undo[]
  /** Errors of steps that could not be undone. */
  leftovers: unknown[]
  /** Aborts every other step when one fails, or when the caller's signal aborts. */
  failure: AbortController
}

async function startParts(options: StackOptions, { cleanup, failure }: Start) {
  const { processes = 1, redis = redisUrl, program, models = stackModels } = options
  const { signal } = failure
  const { template, server } = options
  const database =
    template === undefined || server !== undefined
      ? await createMigratedDatabase('stack', server, signal)
      : await copyDatabase('stack', template)
  cleanup.push(() => database[Symbol.asyncDispose]())
  const folder = await makeFolder()
  cleanup.push(() => rm(folder, { recursive: true, force: true }))
  const urls = await startUpstreams(options.hasLlama ?? false, cleanup, signal)
  const modelsFile = join(folder, 'models.json')
  if (models) await writeFile(modelsFile, JSON.stringify(models(urls), null, 2))
  const settings = serviceSettings({
    databaseUrl: database.url,
    redis,
    folder,
    name: database.name,
    modelsFile: models ? modelsFile : '',
  })
  const service = {
    ...settings,
    ...(options.hasLimits ? {} : generous),
    ...options.environment,
  }
  const { REDIS_URL, REDIS_NAMESPACE } = service as Record<string, string | undefined>
  // Once the processes have ended. Another namespace is the test's own affair.
  if (REDIS_URL !== undefined && REDIS_NAMESPACE === database.name) {
    cleanup.push(() => removeRedisKeys(REDIS_URL, database.name))
  }
  const start = createStarter({ service, program, folder, cleanup, signal })
  const [organization, worker, ...apis] = await allOrNone(failure, [
    createFirstOrganization(service, options.paidUsd, signal),
    start('worker', 'worker'),
    ...Array.from({ length: processes }, (_, index) => start('api', `api-${index + 1}`)),
  ])
  const untilAllReady = apis.map((api) => untilReady(api, signal))
  await allOrNone(failure, untilAllReady)
  const description = await describe(apis, organization, urls.scripted)
  return {
    description,
    apis,
    worker,
    database,
    folder,
    service,
    modelsFile,
    startApi: start.bind(null, 'api'),
    startWorker: start.bind(null, 'worker'),
  }
}

/** Undoes the newest step first and goes on when one fails. */
async function undoAll({ cleanup, leftovers }: Start, signal?: NodeJS.Signals) {
  for (const undo of cleanup.splice(0).toReversed()) {
    await undo(signal).catch((error: unknown) => leftovers.push(error))
  }
}

type StarterOptions = {
  service: Record<string, string>
  program: string | undefined
  folder: string
  cleanup: Undo[]
  signal: AbortSignal
}

function createStarter({ service, program, folder, cleanup, signal }: StarterOptions) {
  /** `further` are variables for this process alone. */
  return async (role: 'api' | 'worker', name: string, further: Record<string, string> = {}) => {
    const started = await startProcess({
      file: programFile(role === 'api' && program !== undefined ? program : 'gatehouse'),
      environment: { ...service, ...further, ROLES: role },
      logFile: join(folder, `${name}.log`),
      signal,
    })
    cleanup.push((killSignal) => stopProcess(started.child, killSignal))
    return started
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

/** The first failure aborts the others; waits until all have ended, so that nothing starts during the cleanup. */
async function allOrNone<const T extends readonly Promise<unknown>[]>(
  failure: AbortController,
  started: T,
) {
  for (const each of started) each.catch((error: unknown) => failure.abort(error))
  await Promise.allSettled(started)
  failure.signal.throwIfAborted()
  return Promise.all(started)
}

export type Stack = Awaited<ReturnType<typeof startStack>>

const generous = {
  ADMIN_REQUESTS_PER_MINUTE: '1000000',
  ADMIN_REQUESTS_PER_MINUTE_ORGANIZATION: '1000000',
  ADMIN_CONCURRENT_REQUESTS: '256',
  GATEWAY_SAVES_PER_MINUTE: '1000000',
  // Tests load the machine until a healthy Redis answers late.
  REDIS_DEADLINE_MS: '1000',
}

async function makeFolder(): Promise<string> {
  const scratch = join(root, '.scratch')
  await mkdir(scratch, { recursive: true })
  return mkdtemp(join(scratch, 'stack-'))
}

async function startUpstreams(hasLlama: boolean, cleanup: Undo[], signal: AbortSignal) {
  const scripted = await startScriptedUpstream()
  cleanup.push(scripted.stop)
  const llama = hasLlama ? await startLlamaUpstream({ signal }) : undefined
  if (llama) cleanup.push(llama.stop)
  return { scripted: scripted.url, ...(llama && { llama: llama.url }) }
}

type ServicePlaces = {
  databaseUrl: string
  redis: string | null
  folder: string
  name: string
  modelsFile: string
}

function serviceSettings(places: ServicePlaces): Record<string, string> {
  const { databaseUrl, redis, folder, name, modelsFile } = places
  return {
    MODELS_FILE: modelsFile,
    ...stackModeration,
    UPSTREAM_KEY: 'the-key-of-the-scripted-upstream',
    PATH: process.env['PATH'] ?? '',
    DATABASE_URL: databaseUrl,
    ...(redis && { REDIS_URL: redis, REDIS_NAMESPACE: name }),
    MASTER_KEYS: `1:${randomBytes(32).toString('base64')}`,
    AUDIT_SIGNING_KEYS: `1:${randomBytes(32).toString('base64')}`,
    HOST: '127.0.0.1',
    PORT: '0',
    OPERATIONS_PORT: '0',
    STATE_DIRECTORY: join(folder, 'state'),
    UNREADY_SECONDS: '0',
    DRAIN_SECONDS: '20',
    FREE_REQUESTS_PER_DAY: '1000',
    // Any test that starts a stack can be run in another billing mode.
    BILLING: process.env['STACK_BILLING'] ?? 'prepaid',
  }
}

/** Runs a command of the operator on organizations and returns its JSON. */
export async function runOperator(
  service: Record<string, string>,
  args: readonly string[],
  signal?: AbortSignal,
) {
  const command = ['operator', 'organizations', ...args, '--json']
  return JSON.parse(await runGatehouse(command, { environment: service, signal })) as unknown
}

/** `usd`: the credits it begins with. */
export async function createOrganization(
  service: Record<string, string>,
  name: string,
  usd = '1000',
) {
  return (await runOperator(service, ['create', '--name', name, '--usd', usd])) as NewOrganization
}

async function createFirstOrganization(
  service: Record<string, string>,
  paidUsd: string | undefined,
  signal: AbortSignal,
) {
  const credits = paidUsd === undefined ? ['--usd', '1000'] : []
  const create = ['create', '--name', 'Example Ltd', ...credits]
  const organization = (await runOperator(service, create, signal)) as NewOrganization
  if (paidUsd === undefined) return organization
  const payment = ['--id', 'first', '--usd', paidUsd]
  await runOperator(service, ['payment', organization.organization_id, ...payment], signal)
  return organization
}

export type Tenant = { organization_id: string; admin_key: string; project_key: string }

/** Organizations of the highest tier, each with an administrator key and a project key, for loads beyond the limits of one. */
export async function createTenants(
  service: Record<string, string>,
  count: number,
): Promise<Tenant[]> {
  const command = [programFile('many-tenants'), String(count)]
  return JSON.parse(
    await runScript(command, { environment: service, timeoutMs: 600_000 }),
  ) as Tenant[]
}

async function createProjectKey(baseUrl: string, organization: NewOrganization): Promise<string> {
  const client = createClient({ baseUrl, credential: organization.admin_key })
  const key = await client.call(createProjectApiKey, {
    params: { project_id: organization.project_id },
    body: { name: 'First project key' },
  })
  return key.value
}
