import { countTokens } from '@gatehouse/contract/count-tokens'
import type { FastifyInstance, FastifyRequest } from 'fastify'

import { requirePermission } from '#access/unauthorized.ts'
import { pickForwardedHeaders } from '#formats/forwarded-headers.ts'
import { messageCallerFormat } from '#formats/messages/message-format.ts'
import { answerText, route, sendJson } from '#http/bind.ts'
import { shareOf } from '#http/principal.ts'
import { betweenStages, largeBodyBytes, readOpenJson } from '#http/read-json.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import type { Gate } from '#platform/gate.ts'

import { countInput, keepsAllThinking, readCountTokens } from './count/count-tokens.ts'
import type { InputCounting } from './count/input-counting.ts'
import { findModel } from './read-model-request.ts'
import type { StepDeps } from './steps.ts'
import type { Catalogue } from './upstreams/catalogue.ts'
import { watchCaller } from './watch-caller.ts'

export type CountTokensDeps = Pick<StepDeps, 'limitInferenceCall'> & {
  catalogue: () => Catalogue
  counting: InputCounting
  readingGate: Gate
  ending: Cancellation
}

type Caller = { owner: string; cancellation: Cancellation }

/** POST /v1/messages/count_tokens: one request of the caller's limits, no tokens and no credits. */
export function serveCountTokens(app: FastifyInstance, deps: CountTokensDeps) {
  route(
    app,
    countTokens,
    async (request, reply) => {
      const { principal } = request
      if (!principal) throw new Error('unguarded endpoint')
      using watched = watchCaller(reply, deps.ending)
      request.isCounted = true
      const attempt = { requestId: request.id, principal, tokens: 0 }
      const { headers, slot, refusal } = await deps.limitInferenceCall(attempt)
      void reply.headers(headers)
      try {
        if (refusal) throw refusal
        requirePermission(countTokens, principal)
        const caller = { owner: shareOf(principal), cancellation: watched.cancellation }
        const counted = await count(deps, request, caller)
        request.line.input_tokens = counted.tokens
        return sendJson(reply, 200, answerText(countTokens, { input_tokens: counted.tokens }))
      } finally {
        await slot?.settle(0)
      }
    },
    { readsOwnBody: true, answerMaxMs: null },
  )
}

async function count(deps: CountTokensDeps, request: FastifyRequest, caller: Caller) {
  const { bodyBytes } = request
  if (!bodyBytes || bodyBytes.length === 0) throw new ApiError('invalid_json', 'The body is empty.')
  const read = () => readRequest(deps, bodyBytes)
  const isLarge = bodyBytes.length > largeBodyBytes
  const { body, keepsAll, model, turn } = await (isLarge
    ? deps.readingGate(caller.owner, read)
    : read())
  request.line.model = model.id
  const sent = {
    request: body,
    keepsAll,
    headers: pickForwardedHeaders(messageCallerFormat, request.headers),
  }
  return countInput(
    { turn, keepsAll, ...deps.counting.prepare(model, sent) },
    { ...caller, patience: 'long' },
  )
}

async function readRequest({ catalogue }: CountTokensDeps, bytes: Buffer) {
  const json = await readOpenJson(bytes)
  await betweenStages(bytes)
  const body = readCountTokens(json)
  await betweenStages(bytes)
  const keepsAll = keepsAllThinking(body)
  const model = findModel(catalogue(), body.model)
  const turn = messageCallerFormat.readTurn(body)
  await betweenStages(bytes)
  return { body, keepsAll, model, turn }
}
