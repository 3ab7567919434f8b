import type { Socket } from 'node:net'

import { adminBodyLimitBytes } from '@gatehouse/contract/endpoint'
import { dialectOfPath } from '@gatehouse/contract/endpoints'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'

import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import { createId } from '#platform/id.ts'
import type { RequestLine } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { answerBrokenRequest, type OpenRequest } from './broken-request.ts'
import { checkHead, urlMaxBytes } from './check-head.ts'
import { type ErrorDeps, sendError } from './error-dialect.ts'
import { idleWriteMs } from './event-stream.ts'
import type { Overload } from './overload/overload.ts'
import { type Bodies, readBody } from './read-body.ts'
import { unknownRoute } from './unknown-route.ts'

export type ServerOptions = ErrorDeps & {
  now: Clock
  metrics: Metrics
  trustedProxies: readonly string[]
  connectionsMax: number
  bodies: Bodies
  overload: Overload
}

/** A server with what all routes share, and without routes. */
export function createServer(options: ServerOptions): FastifyInstance {
  const app = Fastify({
    logger: false,
    genReqId: () => createId('req', options.now()),
    trustProxy: options.trustedProxies.length > 0 ? [...options.trustedProxies] : false,
    requestTimeout: 300_000, // a slow sender is refused long before, by its pace
    keepAliveTimeout: 65_000,
    maxRequestsPerSocket: 1000,
    // A request that arrives on an open connection during the drain is served, not refused.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    bodyLimit: adminBodyLimitBytes,
    routerOptions: { maxParamLength: urlMaxBytes },
    http: {
      headersTimeout: 10_000,
      connectionsCheckingInterval: 5000,
      maxHeaderSize: 16 * 1024,
      insecureHTTPParser: false,
      requireHostHeader: false, // checked in `checkHead`, so that the answer has a request id
    },
    clientErrorHandler: (error, socket) =>
      answerBrokenRequest(error, socket, {
        ...options,
        open: [...(requestsOf.get(socket) ?? [])],
      }),
    frameworkErrors: (error, request, reply) => {
      beginRequest(request, reply, options)
      const dialect = dialectOfPath(pathOf(request))
      void sendError(request, reply, { ...options, dialect, thrown: error })
    },
  })
  limitConnections(app, options.connectionsMax)
  // Other expectations than 100-continue are ignored instead of answered with 417.
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response)
  })
  app.decorate('readGate', null)
  app.decorateRequest('principal', null)
  app.decorateRequest('bodyBytes', null)
  app.decorateRequest('line')
  app.decorateRequest('arrivedAtMs', 0)
  app.addHook('onClose', async () => options.overload.stop())
  readBody(app, options)
  closeUnreadAnswers(app)
  app.addHook('onRequest', (request, reply, done) => {
    beginRequest(request, reply, options)
    refuseCrowd(request)
    checkHead(request.raw)
    // Not in a not-found handler, which would read the body first.
    if (request.is404) throw unknownRoute(pathOf(request))
    shed(request, options.overload)
    ignoreTypeOfIgnoredBody(request)
    done()
  })
  app.setErrorHandler((thrown, request, reply) =>
    sendError(request, reply, { ...options, dialect: dialectOfPath(pathOf(request)), thrown }),
  )
  return app
}

/** Node's `maxConnections` would count per listener, and there are several. */
function limitConnections(app: FastifyInstance, connectionsMax: number) {
  let open = 0
  app.server.prependListener('connection', (socket: Socket) => {
    socket.once('close', () => open--)
    if (++open > connectionsMax) socket.destroy()
  })
}

/** Endpoints without a credential, such as health checks, are always served; pages are not. */
function shed({ routeOptions }: FastifyRequest, overload: Overload) {
  const { endpoint, page } = routeOptions.config
  if (page) return overload.refuseAdministration()
  if (!endpoint || endpoint.permission === null) return
  if (endpoint.dialect === 'admin') overload.refuseAdministration()
  else overload.refuseInference()
}

/** How often to look for answers that their clients do not read. */
const unreadCheckMs = 500

/**
 * Closes connections whose clients do not read their answers. Nearly every answer has been sent by the time of the check, so
 * only the rest get a timer: Node's socket timeout, which ends with the answer. Node grants a second period to a write that has
 * made any progress, so ours is half as long as the deadline. Event streams have a deadline of their own until they end.
 */
function closeUnreadAnswers(app: FastifyInstance) {
  const checker = setInterval(() => {
    for (const open of openRequests) {
      const { raw } = open.reply
      if (open.isTimed || !raw.writableEnded || raw.writableFinished) continue
      open.isTimed = true
      raw.setTimeout(idleWriteMs / 2, () => raw.destroy())
    }
  }, unreadCheckMs).unref()
  app.addHook('onClose', async () => clearInterval(checker))
  // Without this listener Node would also close a connection whose next pipelined call has no answer yet. We close only idle
  // ones.
  app.server.on('timeout', (socket: Socket) => {
    if (!requestsOf.get(socket)?.size) socket.destroy()
  })
}

const pathOf = (request: FastifyRequest) => request.url.split('?', 1)[0] ?? ''

const openRequests = new Set<OpenRequest>()
const requestsOf = new WeakMap<Socket, Set<OpenRequest>>()

function listOf(socket: Socket): Set<OpenRequest> {
  const known = requestsOf.get(socket)
  if (known) return known
  const list = new Set<OpenRequest>()
  requestsOf.set(socket, list)
  return list
}

/** Sets the request id on the answer, and logs one line when the answer has been sent or aborted. */
function beginRequest(request: FastifyRequest, reply: FastifyReply, options: ServerOptions) {
  const { log, metrics } = options
  const arrivedAtMs = performance.now()
  request.arrivedAtMs = arrivedAtMs
  // Not on Node's own response, which would then process all other headers one by one, too.
  void reply.header('x-request-id', request.id)
  void reply.header('request-id', request.id)
  // An answer is meant for one caller, and some contain a secret.
  void reply.header('cache-control', 'no-store')
  request.line = createLine(request)
  metrics.requestsInFlight.inc()
  const ofSocket = listOf(request.raw.socket)
  const ours: OpenRequest = { request, reply, isTimed: false }
  ofSocket.add(ours)
  openRequests.add(ours)
  reply.raw.once('close', () => {
    const durationMs = performance.now() - arrivedAtMs
    const { line } = request
    line.status = reply.raw.statusCode
    line.duration_ms = Math.round(durationMs * 1000) / 1000
    line.outcome = reply.raw.writableFinished ? 'answered' : 'hung_up'
    metrics.requestsInFlight.dec()
    ofSocket.delete(ours)
    openRequests.delete(ours)
    metrics.requestSeconds.observe(
      { method: line.method, route: line.route, status: line.status },
      durationMs / 1000,
    )
    log.request(line)
  })
}

function createLine(request: FastifyRequest): RequestLine {
  const clientRequestId = request.headers['x-request-id']
  const isLoggable = typeof clientRequestId === 'string' && /^[\w.:-]{1,128}$/.test(clientRequestId)
  // All members are present from the start, so that all lines have one shape in V8.
  return {
    request_id: request.id,
    client_request_id: isLoggable ? clientRequestId : undefined,
    method: request.method,
    // The pattern, never the URL: it may contain a secret.
    route: request.routeOptions.url ?? 'unknown',
    status: 0,
    duration_ms: 0,
    outcome: 'answered',
    code: undefined,
    credential_kind: undefined,
    credential_id: undefined,
    organization_id: undefined,
    project_id: undefined,
    replayed: undefined,
    model: undefined,
    upstream: undefined,
    input_tokens: undefined,
    output_tokens: undefined,
  }
}

/** More pipelined requests than any real client leaves unanswered. */
const pipelinedMax = 32

/** One packet can hold a thousand requests, and they would all be served in one turn of the event loop. */
function refuseCrowd({ raw: { socket } }: FastifyRequest) {
  if ((requestsOf.get(socket)?.size ?? 0) <= pipelinedMax) return
  socket.destroy()
  throw new ApiError('invalid_request', 'Too many requests on one connection wait for answers.')
}

/** A body that is ignored may have any content type, even a malformed one. */
function ignoreTypeOfIgnoredBody({ raw, routeOptions }: FastifyRequest) {
  if (!routeOptions.config.endpoint?.body) delete raw.headers['content-type']
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The log line of this request; guards and handlers add to it. */
    line: RequestLine
    /** On the clock of `performance.now()`. */
    arrivedAtMs: number
    /** The body as it was sent, for fingerprints and signatures. */
    bodyBytes: Buffer | null
  }
}
