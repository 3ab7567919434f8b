import { endpoints } from '@gatehouse/contract/endpoints'
import { toOpenApi } from '@gatehouse/contract/openapi'
import {
  readLiveness,
  readOpenApi,
  readReadiness,
  readRoot,
  readWellKnownOpenApi,
} from '@gatehouse/contract/service-info'
import Fastify, { type FastifyInstance } from 'fastify'

import { dependencyUnavailable } from '#platform/api-error.ts'
import type { Metrics } from '#platform/metrics.ts'

import { bind, route, sendJson } from './bind.ts'

/** What stands between this process and traffic; an empty list means ready. */
export type Readiness = () => Promise<string[]> | string[]

/** What anyone may ask: is it there, should it get traffic, what does it speak. */
export function servePublicInfo(app: FastifyInstance, { readiness }: { readiness: Readiness }) {
  // Printed once: anyone may ask, as often as they like.
  const document = JSON.stringify(toOpenApi(endpoints))
  for (const endpoint of [readOpenApi, readWellKnownOpenApi]) {
    route(app, endpoint, async (_, reply) => sendJson(reply, 200, document))
  }
  bind(app, readRoot, () => ({ name: 'gatehouse' as const, openapi: '/openapi.json' }))
  bind(app, readLiveness, () => ({ status: 'ok' as const }))
  bind(app, readReadiness, async () => {
    // The reasons are told on the operations port only.
    if ((await readiness()).length > 0) throw dependencyUnavailable('service')
    return { status: 'ok' as const }
  })
}

/** Metrics and health detail on a listener of their own, loopback by default. */
export function createOperationsServer({
  metrics,
  readiness,
  describePolicies,
}: {
  metrics: Metrics
  readiness: Readiness
  /** What is in force in an organization, in this process. */
  describePolicies: (organizationId: string) => object
}): FastifyInstance {
  const app = Fastify({ logger: false, forceCloseConnections: true })
  app.get('/metrics', async (_, reply) => {
    void reply.type(metrics.registry.contentType)
    return metrics.registry.metrics()
  })
  app.get('/health/live', () => ({ status: 'ok' }))
  app.get('/health/ready', async (_, reply) => {
    const reasons = await readiness()
    void reply.status(reasons.length === 0 ? 200 : 503)
    return { status: reasons.length === 0 ? 'ok' : 'unavailable', reasons }
  })
  app.get('/policies/:organization_id', (request) =>
    describePolicies((request.params as { organization_id: string }).organization_id),
  )
  return app
}
