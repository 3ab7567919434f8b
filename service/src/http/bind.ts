import type { Endpoint, RequestOf, ResponseOf } from '@gatehouse/contract/endpoint'
import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'

import { dependencyUnavailable } from '#platform/api-error.ts'
import { within } from '#platform/deadline.ts'

import type { Principal } from './principal.ts'
import { type Place, validate } from './validate.ts'

/** What a handler may know about its call beyond the validated request. */
export type Call<E extends Endpoint> = E['permission'] extends null
  ? { readonly requestId: string }
  : { readonly requestId: string; readonly principal: Principal }

type Handler<E extends Endpoint> = (
  input: RequestOf<E>,
  call: Call<E>,
) => Promise<ResponseOf<E>> | ResponseOf<E>

/** `signal` tells that the caller has been given up on: nothing may be changed any more. */
type Answer = (
  request: FastifyRequest,
  reply: FastifyReply,
  signal: AbortSignal,
) => Promise<unknown>

/** A call that takes longer than this, once its body has arrived, will not succeed any more. */
const defaultAnswerMaxMs = 20_000
const neverGivenUp = new AbortController().signal
const tooLate = () => dependencyUnavailable('service behind this call')

/** Serves one endpoint of the contract: parse the request, run the handler, check the answer. */
export function bind<E extends Endpoint>(app: FastifyInstance, endpoint: E, handler: Handler<E>) {
  route(app, endpoint, async (request, reply) => {
    const answer = await handler(readInput(endpoint, request), callOf(endpoint, request))
    return sendJson(reply, endpoint.successStatus, answerText(endpoint, answer))
  })
}

type RouteOptions = {
  /** null: the answer takes as long as it takes, and its handler sees to its own deadlines. */
  answerMaxMs?: number | null
  /** The body is only received; reading it is left to the handler. */
  readsOwnBody?: boolean
}

/** The one place where a contract endpoint becomes a route; guards find the endpoint in its config. */
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
    // Fastify's own limit and its `request.signal` count from the first byte and end with the body, so
    // they cannot tell a slow upload from a slow answer. This one starts when the body is there.
    handler: (request, reply) =>
      answerMaxMs === null
        ? answer(request, reply, neverGivenUp)
        : within(answerMaxMs, tooLate, (signal) => answer(request, reply, signal)),
  })
}

export function readInput<E extends Endpoint>(endpoint: E, request: FastifyRequest): RequestOf<E> {
  const part = (schema: z.ZodType | undefined, place: Place, value: unknown) =>
    schema && validate(schema, place, value)
  return {
    params: part(endpoint.params, 'path', request.params),
    query: part(endpoint.query, 'query', request.query),
    body: part(endpoint.body, 'body', request.body),
  } as RequestOf<E>
}

export function callOf<E extends Endpoint>(endpoint: E, request: FastifyRequest): Call<E> {
  const { id, principal } = request
  // The guard runs before any handler; this holds even if a scope were ever mounted without one.
  if (endpoint.permission !== null && !principal) throw new Error('unguarded endpoint')
  return { requestId: id, principal } as Call<E>
}

/** Answers are parsed on the way out: a member that is not declared can never leave. */
export function answerText<E extends Endpoint>(endpoint: E, answer: ResponseOf<E>): string {
  return JSON.stringify(endpoint.response.parse(answer))
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
  interface FastifyRequest {
    principal: Principal | null
  }
}
