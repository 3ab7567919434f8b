import { countTokens } from '@gatehouse/contract/count-tokens'
import type { FastifyInstance, FastifyRequest } from 'fastify'

import { requirePermission } from '#access/unauthorized.ts'
import { answerText, route, sendJson } from '#http/bind.ts'
import { readJson } from '#http/read-json.ts'
import { forwardedHeaders } from '#inference/forwarded-headers.ts'
import { messages } from '#inference/messages/message-protocol.ts'
import { findModel } from '#inference/read-asked.ts'
import type { StepTools } from '#inference/steps.ts'
import { untilHungUp } from '#inference/until-hung-up.ts'
import type { Catalogue } from '#inference/upstreams/catalogue.ts'
import { ApiError } from '#platform/api-error.ts'

import { countInput, keepsAllThinking, readCountTokens } from './count-tokens.ts'
import type { InputCounting } from './input-counting.ts'

export type CountTokensTools = Pick<StepTools, 'limitInferenceCall'> & {
  catalogue: () => Catalogue
  counting: InputCounting
}

/** POST /v1/messages/count_tokens: one request of the caller's limits, no tokens and no credits (G4.70). */
export function serveCountTokens(app: FastifyInstance, tools: CountTokensTools) {
  route(
    app,
    countTokens,
    async (request, reply) => {
      const { principal } = request
      if (!principal) throw new Error('unguarded endpoint')
      using ending = untilHungUp(reply)
      request.isCounted = true
      const attempt = { requestId: request.id, principal, tokens: 0 }
      const { headers, slot, refusal } = await tools.limitInferenceCall(attempt)
      void reply.headers(headers)
      try {
        if (refusal) throw refusal
        requirePermission(countTokens, principal)
        const counted = await count(tools, request, ending.signal)
        request.line.input_tokens = counted.tokens
        return sendJson(reply, 200, answerText(countTokens, { input_tokens: counted.tokens }))
      } finally {
        await slot?.settle(0)
      }
    },
    { readsOwnBody: true, answerMaxMs: null },
  )
}

async function count(tools: CountTokensTools, request: FastifyRequest, signal: AbortSignal) {
  const { bodyBytes } = request
  if (!bodyBytes || bodyBytes.length === 0) throw new ApiError('invalid_json', 'The body is empty.')
  const body = readCountTokens(readJson(bodyBytes, { isOpen: true }))
  const keepsAll = keepsAllThinking(body)
  const model = findModel(tools.catalogue(), body.model)
  request.line.model = model.id
  const turn = messages.readTurn(body)
  const asked = { request: body, keepsAll, headers: forwardedHeaders(request) }
  return countInput({ turn, keepsAll, ...tools.counting.of(model, asked) }, signal)
}
