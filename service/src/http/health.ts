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

import { unavailable } from '#platform/api-error.ts'
import type { Metrics } from '#platform/metrics.ts'

import { bind, route, sendJson } from './bind.ts'

/** Why this process should get no traffic; an empty list means ready. */
export type Readiness = () => Promise<string[]> | string[]

/** The public endpoints: liveness, readiness and the OpenAPI document. */
export function servePublicInfo(app: FastifyInstance, { readiness }: { readiness: Readiness }) {
  // Rendered on first use, because that takes long, and only once, because the endpoint is public and has no rate limit.
  let document: string | undefined
  for (const endpoint of [readOpenApi, readWellKnownOpenApi]) {
    route(app, endpoint, async (_, reply) =>
      sendJson(reply, 200, (document ??= JSON.stringify(toOpenApi(endpoints)))),
    )
  }
  bind(app, readRoot, () => ({ name: 'gatehouse' as const, openapi: '/openapi.json' }))
  bind(app, readLiveness, () => ({ status: 'ok' as const }))
  bind(app, readReadiness, async () => {
    // The reasons are shown on the operations port only.
    if ((await readiness()).length > 0) {
      throw unavailable('This process is not ready; the operations port shows why.')
    }
    return { status: 'ok' as const }
  })
}

/** Metrics and health details on a separate listener, on loopback by default. */
export function createOperationsServer({
  metrics,
  readiness,
  describePolicies,
}: {
  metrics: Metrics
  readiness: Readiness
  /** The policies in force in an organization, in this process. */
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
