import type { FastifyInstance } from 'fastify'

import { createOperationsServer, type Readiness } from '#http/health.ts'
import { listen } from '#http/listen.ts'
import { createServer } from '#http/server.ts'
import { missingMigrations } from '#platform/migrations.ts'
import { describePinned } from '#policy-gateway/in-force.ts'

import type { House } from './assemble.ts'
import { serveRoutes } from './routes.ts'

/** A process that has not heard of changes for this long should not get traffic. */
const staleMs = 30_000

/** The role that answers callers. `serveMore` adds routes of a test's own. */
export async function startApi(house: House, serveMore: (app: FastifyInstance) => void = () => {}) {
  const { config } = house
  let isDraining = false
  const isMigrated = createMigrationCheck(house)
  const readiness: Readiness = async () => {
    const reasons = isDraining ? ['draining'] : []
    // Limits that each process counts for itself would multiply with their number.
    if (!config.REDIS_URL && house.policies.others() > 0) {
      reasons.push('several processes share this database, but REDIS_URL is not set')
    }
    if (isFresh(house)) {
      return (await isMigrated()) ? reasons : [...reasons, 'migrations are missing: run migrate']
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
  app.addHook('onSend', async (_, reply) => {
    // Clients that keep connections open learn that this process is leaving.
    if (isDraining) void reply.header('connection', 'close')
  })
  const operations = createOperationsServer({
    metrics: house.metrics,
    readiness,
    describePolicies: (id) => describePinned(house.policies.inForce.pin(id)),
  })
  await house.inference.warm()
  const address = await listen(app, {
    host: config.HOST,
    port: config.PORT,
    settings: { host: 'HOST', port: 'PORT' },
    isBusy: true,
  })
  const operationsAddress = await listen(operations, {
    host: config.OPERATIONS_HOST,
    port: config.OPERATIONS_PORT,
    settings: { host: 'OPERATIONS_HOST', port: 'OPERATIONS_PORT' },
  })
  house.log.event('listening', { address, operations_address: operationsAddress })
  return {
    address,
    operationsAddress,
    async drain() {
      isDraining = true
      await new Promise((resolve) => setTimeout(resolve, config.UNREADY_SECONDS * 1000))
      // Whatever has not finished by then is cut: the orchestrator would do it less gently.
      const cut = setTimeout(() => app.server.closeAllConnections(), config.DRAIN_SECONDS * 1000)
      await app.close()
      clearTimeout(cut)
      await operations.close()
    },
  }
}

function isFresh({ follower, now }: House): boolean {
  const lastPollAt = follower.lastPollAt()
  return lastPollAt !== undefined && now().getTime() - lastPollAt.getTime() < staleMs
}

/** Asks the database until everything is applied; schemas only ever move forward, so once is enough. */
function createMigrationCheck({ db }: House) {
  let isMigrated = false
  return async () => {
    isMigrated ||= await missingMigrations(db).then(
      (missing) => missing.length === 0,
      () => false,
    )
    return isMigrated
  }
}
