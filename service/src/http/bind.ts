import type { Endpoint, RequestOf, ResponseOf } from '@gatehouse/contract/endpoint'
import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'

import { unavailable } from '#platform/api-error.ts'
import { within } from '#platform/deadline.ts'
import type { Gate } from '#platform/lines/gate.ts'

import { isKnown } from './if-none-match.ts'
import type { Principal } from './principal.ts'
import { type RequestPart, validate } from './validate.ts'

/** What a handler gets besides the validated request. */
export type CallContext<E extends Endpoint> = E['permission'] extends null
  ? { readonly requestId: string }
  : { readonly requestId: string; readonly principal: Principal }

type Handler<E extends Endpoint> = (
  input: RequestOf<E>,
  context: CallContext<E>,
) => Promise<ResponseOf<E>> | ResponseOf<E>

/** `signal` aborts when the caller has got a 503 instead: nothing may be changed after that. */
type Answer = (
  request: FastifyRequest,
  reply: FastifyReply,
  signal: AbortSignal,
) => Promise<unknown>

/** A call that takes longer than this, counted from the arrival of its body, gets a 503. */
const defaultAnswerMaxMs = 20_000
const neverAborted = new AbortController().signal
const tookTooLong = () => unavailable('The call took too long and was aborted; retry later.')

/** Serves one endpoint of the contract: parses the request, runs the handler, checks the answer. */
export function bind<E extends Endpoint>(app: FastifyInstance, endpoint: E, handler: Handler<E>) {
  route(app, endpoint, async (request, reply) => {
    const input = readInput(endpoint, request)
    const context = readContext(endpoint, request)
    const read = async () => handler(input, context)
    const { readGate } = app
    const { principal } = request
    const isLimited = readGate && principal
    const answer = isLimited ? await readGate(principal.organizationId, read) : await read()
    const text = answerText(endpoint, answer)
    if (endpoint.isConditional && isKnown(request, reply, text)) return reply.status(304).send()
    return sendAnswer(endpoint, reply, text)
  })
}

/** Limits how many connections to the database the reads of one organization can hold, in this scope. */
export function limitReads(scope: FastifyInstance, gate: Gate) {
  scope.readGate = gate
}

type RouteOptions = {
  /** null: no deadline here, because the handler has its own. */
  answerMaxMs?: number | null
  /** The body is received but not parsed; the handler parses it. */
  readsOwnBody?: boolean
}

/** Registers a route for an endpoint of the contract; guards read the endpoint from its config. */
export function route(
  app: FastifyInstance,
  endpoint: Endpoint,
  answer: Answer,
  { answerMaxMs = defaultAnswerMaxMs, readsOwnBody = false }: RouteOptions = {},
) {
  const config: FastifyContextConfig = { endpoint, readsOwnBody }
  app.route({
    method: endpoint.method,
    url: endpoint.path,
    bodyLimit: endpoint.bodyLimitBytes,
    config,
    // Fastify's own timeout and its `request.signal` count from the first byte and end with the body, so
    // they cannot distinguish a slow upload from a slow answer. This deadline starts after the body.
    handler: (request, reply) =>
      answerMaxMs === null
        ? answer(request, reply, neverAborted)
        : within(answerMaxMs, tookTooLong, (signal) => answer(request, reply, signal)),
  })
}

export function readInput<E extends Endpoint>(endpoint: E, request: FastifyRequest): RequestOf<E> {
  const parse = (schema: z.ZodType | undefined, part: RequestPart, value: unknown) =>
    schema && validate(schema, part, value)
  return {
    params: parse(endpoint.params, 'path', request.params),
    query: parse(endpoint.query, 'query', request.query),
    headers: parse(endpoint.headers, 'header', namedHeaders(endpoint, request)),
    body: parse(endpoint.body, 'body', request.body),
  } as RequestOf<E>
}

/** The headers that the endpoint reads, under the names that its contract gives them. */
const namedHeaders = ({ headers }: Endpoint, request: FastifyRequest) =>
  Object.fromEntries(
    Object.keys(headers?.shape ?? {}).map((name) => [name, request.headers[name.toLowerCase()]]),
  )

export function readContext<E extends Endpoint>(
  endpoint: E,
  request: FastifyRequest,
): CallContext<E> {
  const { id, principal } = request
  // A second guard, in case a scope were registered without `guard`.
  if (endpoint.permission !== null && !principal) throw new Error('unguarded endpoint')
  return { requestId: id, principal } as CallContext<E>
}

/** Serializes an answer through its schema, so that no undeclared member can leave the service. */
export function answerText<E extends Endpoint>(endpoint: E, answer: ResponseOf<E>): string {
  return JSON.stringify(endpoint.response.parse(answer))
}

/** Sends a successful answer with its `ETag`, which is read from the answer so that a replay has it too. */
export function sendAnswer({ etag, successStatus }: Endpoint, reply: FastifyReply, text: string) {
  if (etag !== undefined) {
    const answer = JSON.parse(text) as Record<string, unknown>
    void reply.header('etag', `"${String(answer[etag])}"`)
  }
  return sendJson(reply, successStatus, text)
}

export function sendJson(reply: FastifyReply, status: number, text: string) {
  return reply.status(status).type('application/json; charset=utf-8').send(text)
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The contract entry a route serves. Every route has one. */
    endpoint?: Endpoint
    readsOwnBody?: boolean
  }
  interface FastifyInstance {
    readGate: Gate | null
  }
  interface FastifyRequest {
    principal: Principal | null
  }
}
