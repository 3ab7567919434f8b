import { countTokens } from '@gatehouse/contract/count-tokens'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import { requirePermission } from '#access/unauthorized.ts'
import { pickForwardedHeaders } from '#formats/forwarded-headers.ts'
import { messageCallerFormat } from '#formats/messages/message-format.ts'
import { answerText, route, sendJson } from '#http/bind.ts'
import { shareOf } from '#http/principal.ts'
import { betweenStages, largeBodyBytes, readOpenJson } from '#http/read-json.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import type { Gate } from '#platform/gate.ts'

import { type AdmitDeps, admit, asksForNothing } from './admission/admit-call.ts'
import { countInput, keepsAllThinking, readCountTokens } from './count/count-tokens.ts'
import type { InputCounting } from './count/input-counting.ts'
import { readPolicySubject } from './gateway/policy-subject.ts'
import { requireProject } from './gateway/require-project.ts'
import type { InferenceCall } from './inference-call.ts'
import { type Findings, type JudgedCall, createFindings } from './judging/verdicts/judgement.ts'
import { findModel } from './read-model-request.ts'
import type { RecordCount } from './record-call.ts'
import type { StepDeps } from './steps.ts'
import type { Catalogue } from './upstreams/catalogue.ts'
import { watchCaller } from './watch-caller.ts'

export type CountTokensDeps = AdmitDeps &
  Pick<StepDeps, 'judgeRequest'> & {
    recordCount: RecordCount
    catalogue: () => Catalogue
    counting: InputCounting
    readingGate: Gate
    ending: Cancellation
  }

/** A count on its way; what becomes known of it is told by its event, however it ends. */
type CountCall = JudgedCall & {
  /** What is wrong with its headers. */
  headerError: ApiError | null
  counted: InferenceCall['counted']
  model: string | null
  findings: Findings | null
}

/**
 * POST /v1/messages/count_tokens: one request of the caller's limits and quotas, no tokens and no credits. Its text may go to an
 * upstream's counter, so it is judged first, as the request of a call is.
 */
export function serveCountTokens(app: FastifyInstance, deps: CountTokensDeps) {
  route(
    app,
    countTokens,
    async (request, reply) => {
      using watched = watchCaller(reply, deps.ending)
      const call = openCount(request, reply, watched.cancellation)
      await using _slot = await admit(call, asksForNothing, deps)
      const tokens = await countAndRecord(deps, request, call)
      return sendJson(reply, 200, answerText(countTokens, { input_tokens: tokens }))
    },
    { readsOwnBody: true, answerMaxMs: null },
  )
}

function openCount(
  request: FastifyRequest,
  reply: FastifyReply,
  cancellation: Cancellation,
): CountCall {
  const { id: requestId, principal, policies } = request
  if (!principal || !policies) throw new Error('unguarded endpoint')
  request.isCounted = true
  const { policySubject, error } = readPolicySubject(request.headers, principal)
  return {
    requestId,
    principal,
    policies,
    policySubject,
    headerError: error,
    target: 'count_tokens',
    format: messageCallerFormat,
    cancellation,
    addHeaders: (headers) => void reply.headers(headers),
    counted: null,
    model: null,
    findings: null,
  }
}

/** The caller is answered after its event is written. */
async function countAndRecord(
  deps: CountTokensDeps,
  request: FastifyRequest,
  call: CountCall,
): Promise<number> {
  try {
    requirePermission(countTokens, call.principal)
    requireProject(call)
    if (call.headerError) throw call.headerError
    const { tokens } = await count(deps, request, call)
    request.line.input_tokens = tokens
    await deps.recordCount(call, { inputTokens: tokens }, call.findings)
    return tokens
  } catch (error) {
    await deps.recordRefusal(call, error, call.findings)
    throw error
  }
}

async function count(deps: CountTokensDeps, request: FastifyRequest, call: CountCall) {
  const { bodyBytes } = request
  if (!bodyBytes || bodyBytes.length === 0) throw new ApiError('invalid_json', 'The body is empty.')
  const owner = shareOf(call.principal)
  const read = () => readRequest(deps, bodyBytes)
  const isLarge = bodyBytes.length > largeBodyBytes
  const { keepsAll, ...asked } = await (isLarge ? deps.readingGate(owner, read) : read())
  const { model } = asked
  call.model = model.id
  request.line.model = model.id
  call.findings = createFindings()
  const judgement = await deps.judgeRequest(call, asked, call.findings)
  call.findings = judgement
  if (judgement.refusal) throw judgement.refusal
  await judgement.settle()
  const sent = {
    request: judgement.request.body,
    keepsAll,
    headers: pickForwardedHeaders(messageCallerFormat, request.headers),
  }
  return countInput(
    { turn: judgement.request.turn, keepsAll, ...deps.counting.prepare(model, sent) },
    { owner, cancellation: call.cancellation, patience: 'long' },
  )
}

/** A count says nothing of an answer, and its own result is not known before it is judged. */
const unknownToRules = { isStreamed: false, estimate: { tokens: 0 }, hasUnseenInput: false }

async function readRequest({ catalogue }: CountTokensDeps, bytes: Buffer) {
  const json = await readOpenJson(bytes)
  await betweenStages(bytes)
  const body = readCountTokens(json)
  await betweenStages(bytes)
  const keepsAll = keepsAllThinking(body)
  const model = findModel(catalogue(), body.model)
  const turn = messageCallerFormat.readTurn(body)
  await betweenStages(bytes)
  return { body, keepsAll, model, turn, ...unknownToRules }
}
