import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

import { adminBodyLimitBytes } from '@gatehouse/contract/endpoint'
import { dialectOfPath, methodsAt } from '@gatehouse/contract/endpoints'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'

import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import { createId } from '#platform/id.ts'
import type { RequestLine } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { answerBrokenRequest, type OpenRequest } from './broken-request.ts'
import { type ErrorVoice, sendError } from './error-dialect.ts'
import { readBody } from './read-body.ts'

export type ServerOptions = ErrorVoice & {
  now: Clock
  metrics: Metrics
  trustedProxies: readonly string[]
  connectionsMax: number
}

const urlMaxBytes = 8 * 1024

/** A server with everything that every route shares, and no route. */
export function createServer(options: ServerOptions): FastifyInstance {
  const app = Fastify({
    logger: false,
    genReqId: () => createId('req', options.now()),
    trustProxy: options.trustedProxies.length > 0 ? [...options.trustedProxies] : false,
    requestTimeout: 60_000,
    keepAliveTimeout: 65_000,
    maxRequestsPerSocket: 1000,
    // A request that arrives on an open connection while we drain is served, not refused.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    bodyLimit: adminBodyLimitBytes,
    routerOptions: { maxParamLength: urlMaxBytes },
    http: {
      headersTimeout: 10_000,
      connectionsCheckingInterval: 5000,
      maxHeaderSize: 16 * 1024,
      insecureHTTPParser: false,
      requireHostHeader: false, // we ask for it ourselves, so that the answer has a request id
    },
    clientErrorHandler: (error, socket) =>
      answerBrokenRequest(error, socket, {
        ...options,
        open: [...(openRequests.get(socket) ?? [])],
      }),
    frameworkErrors: (error, request, reply) => {
      beginRequest(request, reply, options)
      const dialect = dialectOfPath(pathOf(request))
      void sendError(request, reply, { ...options, dialect, thrown: error })
    },
  })
  app.server.maxConnections = options.connectionsMax
  // What a caller expects beyond 100-continue is not ours to refuse.
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response)
  })
  app.decorateRequest('principal', null)
  app.decorateRequest('bodyBytes', null)
  app.decorateRequest('line')
  readBody(app)
  app.addHook('onRequest', async (request, reply) => {
    beginRequest(request, reply, options)
    refuseAmbiguous(request)
    // Here and not in a not-found handler: that would read the body first.
    if (request.is404) throw unknownRoute(pathOf(request))
    ignoreTypeOfIgnoredBody(request)
  })
  app.setErrorHandler((thrown, request, reply) =>
    sendError(request, reply, { ...options, dialect: dialectOfPath(pathOf(request)), thrown }),
  )
  return app
}

const pathOf = (request: FastifyRequest) => request.url.split('?', 1)[0] ?? ''

function unknownRoute(path: string): ApiError {
  const methods = methodsAt(path).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : method))
  if (methods.length === 0) {
    return new ApiError(
      'route_not_found',
      'There is no such endpoint; /openapi.json lists them all.',
    )
  }
  const allow = methods.join(', ')
  return new ApiError('method_not_allowed', `This path takes ${allow} only.`, {
    headers: { allow },
  })
}

const openRequests = new WeakMap<Socket, Set<OpenRequest>>()

/** Ids on the answer, whatever it will be, and one log line when it has been sent or given up. */
function beginRequest(request: FastifyRequest, reply: FastifyReply, options: ServerOptions) {
  const { log, metrics } = options
  const startedAtMs = performance.now()
  reply.raw.setHeader('x-request-id', request.id)
  reply.raw.setHeader('request-id', request.id)
  // Answers belong to one caller, and some hold a secret.
  reply.raw.setHeader('cache-control', 'no-store')
  request.line = lineOf(request)
  metrics.requestsInFlight.inc()
  const { socket } = request.raw
  const open = openRequests.get(socket) ?? new Set()
  const ours: OpenRequest = { request, reply }
  openRequests.set(socket, open.add(ours))
  reply.raw.once('close', () => {
    const durationMs = performance.now() - startedAtMs
    const { line } = request
    line.status = reply.raw.statusCode
    line.duration_ms = Math.round(durationMs * 1000) / 1000
    line.outcome = reply.raw.writableFinished ? 'answered' : 'hung_up'
    metrics.requestsInFlight.dec()
    open.delete(ours)
    metrics.requestSeconds.observe(
      { method: line.method, route: line.route, status: line.status },
      durationMs / 1000,
    )
    log.request(line)
  })
}

function lineOf(request: FastifyRequest): RequestLine {
  const clientRequestId = request.headers['x-request-id']
  const isLoggable = typeof clientRequestId === 'string' && /^[\w.:-]{1,128}$/.test(clientRequestId)
  return {
    request_id: request.id,
    ...(isLoggable && { client_request_id: clientRequestId }),
    method: request.method,
    // The pattern, never the URL: a caller may have put a secret there.
    route: request.routeOptions.url ?? 'unknown',
    status: 0,
    duration_ms: 0,
    outcome: 'answered',
  }
}

const onlyOnce = new Set(['host', 'content-length', 'content-type', 'authorization', 'x-api-key'])

/** Node keeps the first of two such headers and a proxy may keep the last: refuse both. */
function refuseAmbiguous({ raw }: { raw: IncomingMessage }) {
  const seen = new Set<string>()
  for (let index = 0; index < raw.rawHeaders.length; index += 2) {
    const name = raw.rawHeaders[index]?.toLowerCase() ?? ''
    if (!onlyOnce.has(name)) continue
    if (seen.has(name)) {
      throw new ApiError('invalid_request', `The header '${name}' was sent more than once.`)
    }
    seen.add(name)
  }
  if (raw.httpVersion === '1.1' && !seen.has('host')) {
    throw new ApiError('invalid_request', "The header 'host' is missing.")
  }
  if ((raw.url?.length ?? 0) > urlMaxBytes) {
    throw new ApiError('url_too_long', 'The URL is longer than 8 KiB.')
  }
}

/** A body that nobody reads may be of any type, even of none that exists (G4.20). */
function ignoreTypeOfIgnoredBody({ raw, routeOptions }: FastifyRequest) {
  if (!routeOptions.config.endpoint?.body) delete raw.headers['content-type']
}

declare module 'fastify' {
  interface FastifyRequest {
    /** What the log will say about this request; guards and handlers fill it in. */
    line: RequestLine
    /** The body as it was sent, for fingerprints and signatures. */
    bodyBytes: Buffer | null
  }
}
