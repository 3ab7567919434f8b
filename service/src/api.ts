import type { FastifyInstance } from 'fastify'

import { createOperationsServer, type Readiness } from '#http/health.ts'
import { listen } from '#http/listen.ts'
import { createServer } from '#http/server.ts'
import type { Metrics } from '#platform/metrics.ts'
import { describePinned } from '#policies-in-force/in-force.ts'

import type { House } from './assemble.ts'
import type { Config } from './config.ts'
import { logReadiness } from './log-readiness.ts'
import { createReadiness } from './readiness.ts'
import { serveRoutes } from './routes.ts'

/** How long interrupted calls may take to charge what was sent and to tell their callers. */
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
  const findOwnReasons = createReadiness(house)
  const findReasons = async () => {
    const reasons = await findOwnReasons()
    house.self.isReady = reasons.length === 0 && !isDraining
    return reasons
  }
  const readiness: Readiness = async () => {
    const reasons = await findReasons()
    return isDraining ? ['draining', ...reasons] : reasons
  }
  const app = createServer({
    ...house,
    noteRefusal: house.refusals.note,
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
  const readinessLog = logReadiness(findReasons, house.log)
  return {
    address,
    operationsAddress,
    async drain() {
      isDraining = true
      house.self.isReady = false
      readinessLog.stop()
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

/** Calls that have not finished in time are ended here, because the orchestrator would end them less gently. */
async function closeInTime(app: FastifyInstance, { config, inference }: House) {
  const drainMs = config.DRAIN_SECONDS * 1000
  const endsAtMs = performance.now() + drainMs + lastWordsMs
  const timers = [
    setTimeout(inference.endCalls, drainMs),
    setTimeout(() => app.server.closeAllConnections(), drainMs + lastWordsMs),
  ]
  await app.close()
  // Plain calls go on without their callers, who may already have hung up.
  await inference.openCalls.ended(Math.max(lastWordsMs, endsAtMs - performance.now()))
  for (const timer of timers) clearTimeout(timer)
}

function logListening(
  { log, policies }: House,
  address: string,
  operationsAddress: string | undefined,
) {
  log.event('listening', {
    address,
    pattern_engine: policies.engine.name, // one of the two engines is slower
    ...(operationsAddress && { operations_address: operationsAddress }),
  })
}
