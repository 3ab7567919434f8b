import type { IncomingMessage } from 'node:http'

import type { FastifyInstance, FastifyRequest } from 'fastify'

import { ApiError, rateLimitExceeded } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'

import type { BodyBudget, Reservation } from './body-budget.ts'
import { createPaceWatch } from './pace-watch.ts'
import { isAdministrator, type Principal } from './principal.ts'
import { readBytes } from './read-bytes.ts'
import { readJson } from './read-json.ts'

/** The memory for bodies, and how many concurrent calls the organization of a caller may make. */
export type Bodies = { budget: BodyBudget; concurrencyOf: (principal: Principal) => number }

/** A body is read before the limiter decides, so an organization may send more bodies at once than it may make concurrent calls. */
const readersPerCall = 4
/** Shared by all anonymous callers; the senders of webhooks share as many, and so do the senders of forms. */
const publicReadersMax = 500

/**
 * Installs one body reader for every content type. The size is checked first (413, while reading), then the
 * type, then the JSON. An endpoint without a body schema ignores the body.
 */
export function readBody(app: FastifyInstance, { bodies, now }: { bodies: Bodies; now: Clock }) {
  const paceWatch = createPaceWatch()
  app.addHook('onClose', async () => paceWatch.stop())
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', async (request: FastifyRequest, message: IncomingMessage) => {
    const { bodyLimit: maxBytes, config } = request.routeOptions
    const reservation = reserve(request, bodies, now())
    try {
      request.bodyBytes = await readBytes(message, { maxBytes, reservation, paceWatch })
      if (!config.endpoint?.body) return undefined
      refuseOtherTypes(request)
      return config.readsOwnBody ? undefined : readJson(request.bodyBytes)
    } finally {
      reservation.release()
    }
  })
}

function reserve(
  { principal, headers, routeOptions }: FastifyRequest,
  bodies: Bodies,
  now: Date,
): Reservation {
  const { budget, concurrencyOf } = bodies
  if (!principal && headers['transfer-encoding'] !== undefined) {
    throw new ApiError('length_required', 'Send the body with Content-Length, not in chunks.')
  }
  const isPublic = !principal || principal.kind === 'anonymous'
  const limit = isPublic ? publicReadersMax : concurrencyOf(principal)
  const reservation = budget.open(
    nameOf(principal, routeOptions.config.page !== undefined),
    isPublic ? limit : readersPerCall * limit,
  )
  if (reservation) return reservation
  if (isPublic) throw new ApiError('overloaded', 'Too many requests are being received.')
  if (!isAdministrator(principal)) {
    throw new ApiError(
      'concurrency_limit_exceeded',
      `Rate limit reached for concurrent requests on organization: limit ${limit}. Retry after 1s.`,
      { headers: { 'retry-after': '1' } },
    )
  }
  throw rateLimitExceeded({
    what: 'concurrent requests',
    where: 'organization',
    limit,
    waitMs: 1000,
    now,
    scope: 'organization',
    metric: 'concurrent_requests',
  })
}

/** The name under which readers are counted. Administration has its own, so that an organization under attack can still use it. */
function nameOf(principal: Principal | null, isPage: boolean): string {
  if (!principal) return isPage ? 'pages' : 'webhooks'
  if (principal.kind === 'anonymous') return 'anonymous'
  return `${isAdministrator(principal) ? 'administration' : 'inference'} ${principal.organizationId}`
}

function refuseOtherTypes({ headers }: FastifyRequest) {
  const isUsual = headers['content-type'] === 'application/json'
  if (isUsual && headers['content-encoding'] === undefined) return
  const mediaType = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (!/^application\/([\w.-]+\+)?json$/.test(mediaType)) {
    throw new ApiError(
      'invalid_content_type',
      'The body is not declared as JSON; send it with Content-Type: application/json.',
    )
  }
  const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity'
  if (encoding !== 'identity') {
    throw new ApiError(
      'invalid_content_type',
      'Compressed bodies are not accepted; send the body without Content-Encoding.',
    )
  }
}
