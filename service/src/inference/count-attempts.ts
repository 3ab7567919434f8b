import { setTimeout as sleep } from 'node:timers/promises'

import type { Dialect } from '@gatehouse/contract/error-body'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import type { CountCall } from '#access/guard.ts'
import { type ErrorVoice, sendError } from '#http/error-dialect.ts'
import { toApiError } from '#platform/to-api-error.ts'

import type { StepTools } from './steps.ts'

type Tools = ErrorVoice & Pick<StepTools, 'limitInferenceCall'>

/**
 * Gives a scope of inference routes its family of errors. A request that failed before the pipeline saw it,
 * because its body is too large, say, is an attempt all the same: counted, and told where it stands (G8.3, G8.10).
 */
export function speakInferenceErrors(app: FastifyInstance, dialect: Dialect, tools: Tools) {
  app.decorateRequest('isCounted', false)
  app.setErrorHandler(async (thrown, request, reply) => {
    await countFailed(request, reply, tools)
    if (isTooLarge(thrown)) await untilSent(request)
    return sendError(request, reply, { ...tools, dialect, thrown })
  })
}

const isTooLarge = (thrown: unknown) => toApiError(thrown).code === 'request_too_large'

const sendMaxMs = 20_000

/**
 * A connection that its client wants closed goes with the answer: whoever is still sending then would see a
 * broken pipe and no answer. What is sent is read and thrown away first, for a while.
 */
async function untilSent({ raw }: FastifyRequest) {
  if (raw.headers.connection?.toLowerCase() !== 'close') return
  if (raw.readableEnded || raw.destroyed) return
  const ended = new Promise((resolve) => raw.once('end', resolve).once('close', resolve))
  raw.resume()
  await Promise.race([ended, sleep(sendMaxMs, undefined, { ref: false })])
}

/** One request of the caller's limits, for calls that reach no model. */
export function countAsRequest({
  limitInferenceCall,
}: Pick<Tools, 'limitInferenceCall'>): CountCall {
  return async (request, reply, principal) => {
    request.isCounted = true
    const attempt = { requestId: request.id, principal, tokens: 0 }
    const { headers, slot, refusal } = await limitInferenceCall(attempt)
    void reply.headers(headers)
    await slot?.settle(0)
    return refusal
  }
}

async function countFailed(request: FastifyRequest, reply: FastifyReply, tools: Tools) {
  const { id: requestId, principal, isCounted } = request
  if (!principal || isCounted) return
  request.isCounted = true
  const { headers, slot } = await tools.limitInferenceCall({ requestId, principal, tokens: 0 })
  void reply.headers(headers)
  await slot?.settle(0)
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Has the limiter seen this attempt? */
    isCounted: boolean
  }
}
