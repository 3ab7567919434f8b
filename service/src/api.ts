import type { FastifyInstance } from 'fastify'

import { createOperationsServer, type Readiness } from '#http/health.ts'
import { listen } from '#http/listen.ts'
import { createServer } from '#http/server.ts'
import { findModerationGap } from '#moderation/moderate.ts'
import type { Metrics } from '#platform/metrics.ts'
import { findMismatch, readSchemaState } from '#platform/migrations.ts'
import { describePinned } from '#policy-gateway/in-force.ts'

import type { House } from './assemble.ts'
import type { Config } from './config.ts'
import { serveRoutes } from './routes.ts'

/** A process that has not heard of changes for this long should not get traffic. */
const staleMs = 30_000

/** How long calls that are ended may take to charge what was sent and to tell their callers. */
const lastWordsMs = 1000

/** What the operations port shows of this process. */
type Operations = {
  metrics: Metrics
  readiness: Readiness
  describePolicies: (organizationId: string) => object
}
type OpenOperations = (
  operations: Operations,
  config: Config,
) => Promise<{ address?: string; close(): Promise<unknown> }>

/** The policies in force in an organization, in this process. */
const describePolicies = ({ policies, moderation }: House, organizationId: string) =>
  describePinned(policies.inForce.pin(organizationId), moderation.current().judge !== null)

/**
 * The role that answers callers. `serveMore` adds routes of a test's own. One of several processes shares its port with the
 * others, and their supervisor has the operations port.
 */
export async function startApi(
  house: House,
  serveMore: (app: FastifyInstance) => void = () => {},
  openOperations: OpenOperations = listenForOperators,
) {
  const { config } = house
  let isDraining = false
  const findSchemaFault = createSchemaCheck(house)
  const readiness: Readiness = async () => {
    const reasons = isDraining ? ['draining'] : []
    // Limits that each process counts for itself would multiply with their number.
    if (!config.REDIS_URL && house.policies.others() > 0) {
      reasons.push('several processes share this database, but REDIS_URL is not set')
    }
    // Calls to models are refused meanwhile.
    const gap =
      config.MODELS_FILE === undefined ? null : findModerationGap(house.moderation.current())
    if (gap !== null) reasons.push(gap)
    if (isFresh(house)) {
      // The poll has found what is published, which is put in force after it.
      if (!house.policies.areKnown()) reasons.push('the policies are not in force yet')
      const fault = await findSchemaFault()
      return fault === null ? reasons : [...reasons, fault]
    }
    // Without the database a process that is alone serves on, by the policies it last knew.
    if (house.policies.canServeAlone()) return reasons
    return [...reasons, 'no configuration changes were received lately: is the database up?']
  }
  const app = createServer({
    ...house,
    trustedProxies: config.TRUSTED_PROXIES,
    connectionsMax: config.CONNECTIONS_MAX,
  })
  serveRoutes(app, house, readiness)
  serveMore(app)
  app.addHook('onSend', (_, reply, __, done) => {
    // Clients that keep connections open learn that this process is leaving.
    if (isDraining) void reply.header('connection', 'close')
    done()
  })
  const address = await listen(app, {
    host: config.HOST,
    port: config.PORT,
    settings: { host: 'HOST', port: 'PORT' },
    isBusy: true,
    isShared: house.processNumber !== undefined,
  })
  const operations = await openOperations(
    { metrics: house.metrics, readiness, describePolicies: (id) => describePolicies(house, id) },
    config,
  )
  const { address: operationsAddress } = operations
  logListening(house, address, operationsAddress)
  return {
    address,
    operationsAddress,
    async drain() {
      isDraining = true
      await new Promise((resolve) => setTimeout(resolve, config.UNREADY_SECONDS * 1000))
      await closeInTime(app, house)
      await operations.close()
    },
  }
}

const listenForOperators: OpenOperations = async (operations, config) => {
  const server = createOperationsServer(operations)
  const address = await listen(server, {
    host: config.OPERATIONS_HOST,
    port: config.OPERATIONS_PORT,
    settings: { host: 'OPERATIONS_HOST', port: 'OPERATIONS_PORT' },
  })
  return { address, close: () => server.close() }
}

/** Whatever has not finished in time is ended: the orchestrator would do it less gently. */
async function closeInTime(app: FastifyInstance, { config, inference }: House) {
  const drainMs = config.DRAIN_SECONDS * 1000
  const endsAtMs = performance.now() + drainMs + lastWordsMs
  const timers = [
    setTimeout(inference.endCalls, drainMs),
    setTimeout(() => app.server.closeAllConnections(), drainMs + lastWordsMs),
  ]
  await app.close()
  // Plain calls go on without their callers, who may have hung up.
  await inference.openCalls.ended(Math.max(lastWordsMs, endsAtMs - performance.now()))
  for (const timer of timers) clearTimeout(timer)
}

function isFresh({ follower, now }: House): boolean {
  const lastPollAt = follower.lastPollAt()
  return lastPollAt !== undefined && now().getTime() - lastPollAt.getTime() < staleMs
}

const missingMigrations = 'migrations are missing: run migrate'
/** A newer release may migrate at any time; how often a process that is ready looks again. */
const schemaCheckMs = 10_000

/** What is wrong with the schema, as a reason not to be ready. A check that fails leaves the last result in force. */
function createSchemaCheck({ db, now }: House) {
  let fault: string | null = missingMigrations
  let checkedAtMs = 0
  async function check() {
    checkedAtMs = now().getTime()
    const state = await readSchemaState(db).catch(() => undefined)
    if (state) fault = findMismatch(state) ?? (state.missing.length > 0 ? missingMigrations : null)
  }
  return async () => {
    if (fault !== null) await check()
    // Nobody waits for this one: a probe must not fail because all connections are in use.
    else if (now().getTime() - checkedAtMs >= schemaCheckMs) void check()
    return fault
  }
}

function logListening(
  { log, policies }: House,
  address: string,
  operationsAddress: string | undefined,
) {
  log.event('listening', {
    address,
    pattern_engine: policies.engine.name, // one of the two is slower
    ...(operationsAddress && { operations_address: operationsAddress }),
  })
}
