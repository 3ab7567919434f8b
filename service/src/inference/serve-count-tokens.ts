import { countTokens } from '@gatehouse/contract/count-tokens'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import { requirePermission } from '#access/unauthorized.ts'
import { pickForwardedHeaders } from '#formats/forwarded-headers.ts'
import { messageCallerFormat } from '#formats/messages/message-format.ts'
import { answerText, route, sendJson } from '#http/bind.ts'
import type { Overload } from '#http/overload/overload.ts'
import { shareOf } from '#http/principal.ts'
import { largeBodyBytes } from '#http/read-json.ts'
import type { RecentRefusals } from '#limits/recent-refusals.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import type { Gate } from '#platform/lines/gate.ts'
import { waitForSlice } from '#platform/steps/shared-turns.ts'

import { type AdmitDeps, admitWith, asksForNothing } from './admission/admit-call.ts'
import { readPolicySubject } from './configured/policy-subject.ts'
import { requireProject } from './configured/require-project.ts'
import { refuseAgain } from './count-attempts.ts'
import { countInput } from './count/count-tokens.ts'
import type { InputCounting } from './count/input-counting.ts'
import { type CountRequest, type ParsedCount, readCount } from './count/read-count.ts'
import { type Findings, type CheckedCall, createFindings } from './enforcement/findings.ts'
import type { InferenceCall } from './inference-call.ts'
import { findModel } from './read-model-request.ts'
import type { RecordCount } from './record-call.ts'
import type { StepDeps } from './steps.ts'
import { type Catalogue, onlyAllowed } from './upstreams/catalogue.ts'
import { watchCaller } from './watch-caller.ts'

export type CountTokensDeps = AdmitDeps &
  Pick<StepDeps, 'openChecks'> & {
    recordCount: RecordCount
    catalogue: () => Catalogue
    counting: InputCounting
    recentRefusals: Pick<RecentRefusals, 'of'>
    readingGate: Gate
    overload: Pick<Overload, 'waitForTurn'>
    ending: Cancellation
  }

/** A count in progress. What is found out about it goes into its event, however it ends. */
type CountCall = CheckedCall & {
  arrivedAtMs: number
  /** What is wrong with its headers; null if nothing is. */
  headerError: ApiError | null
  counted: InferenceCall['counted']
  parsed: ParsedCount
  model: string | null
  /** The count, once it is known. */
  tokens: number
  findings: Findings | null
  /** Called when its request has been checked, so that another call may begin. */
  onDecided: InferenceCall['onDecided']
}

/**
 * POST /v1/messages/count_tokens. It counts as one request in the caller's limits and quotas, and its tokens count in the
 * limits per minute, so that no caller can have more text read than it may send. It costs no credits. Its text may go to an
 * upstream's counter, so it is checked first, like the request of a call.
 */
export function serveCountTokens(app: FastifyInstance, deps: CountTokensDeps) {
  route(
    app,
    countTokens,
    async (request, reply) => {
      using watched = watchCaller(reply, deps.ending)
      const { cancellation } = watched
      const opened = await openCount(request, reply, { deps, cancellation })
      using turn = await deps.overload.waitForTurn(shareOf(opened.principal), cancellation)
      const call = { ...opened, onDecided: turn.admit }
      await using _slot = await admitWith(call, askFor(call), deps)
      const tokens = await countAndRecord(deps, request, call)
      return sendJson(reply, 200, answerText(countTokens, { input_tokens: tokens }))
    },
    { readsOwnBody: true, answerMaxMs: null },
  )
}

const askFor = (call: CountCall) =>
  call.parsed.ok
    ? {
        ...asksForNothing,
        model: call.model,
        tokens: call.parsed.request.expectedTokens,
        isCount: true,
        usedTokens: async () => call.tokens,
      }
    : asksForNothing

type Opening = { deps: CountTokensDeps; cancellation: Cancellation }

async function openCount(
  request: FastifyRequest,
  reply: FastifyReply,
  { deps, cancellation }: Opening,
): Promise<Omit<CountCall, 'onDecided'>> {
  const { id: requestId, principal, policies, bodyBytes: bytes } = request
  if (!principal || !policies) throw new Error('unguarded endpoint')
  const owner = shareOf(principal)
  const isLarge = (bytes?.length ?? 0) > largeBodyBytes
  if (isLarge) refuseAgain(request, reply, deps)
  const { counting, catalogue } = deps
  const find = (name: string) => findModel(onlyAllowed(catalogue(), principal.allowedModels), name)
  const sent = { bytes, owner, cancellation }
  const read = () => readCount({ counting, findModel: find }, sent)
  const parsed = await (isLarge ? deps.readingGate(owner, read) : read())
  request.isCounted = true
  const { policySubject, error } = readPolicySubject(request.headers, principal)
  return {
    requestId,
    arrivedAtMs: request.arrivedAtMs,
    principal,
    policies,
    policySubject,
    headerError: error,
    target: 'count_tokens',
    format: messageCallerFormat,
    cancellation,
    addHeaders: (headers) => void reply.headers(headers),
    counted: null,
    parsed,
    model: parsed.ok ? parsed.request.model.id : null,
    tokens: 0,
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
    if (!call.parsed.ok) throw call.parsed.error
    const { tokens } = await count(deps, request, call, call.parsed.request)
    call.tokens = tokens
    request.line.input_tokens = tokens
    await deps.recordCount(call, { inputTokens: tokens }, call.findings)
    return tokens
  } catch (error) {
    await deps.recordRefusal(call, error, call.findings)
    throw error
  }
}

async function count(
  deps: CountTokensDeps,
  request: FastifyRequest,
  call: CountCall,
  { keepsAll, expectedTokens, ...read }: CountRequest,
) {
  const { model } = read
  const owner = shareOf(call.principal)
  const asked = { ...read, ...unknownToRules }
  request.line.model = model.id
  call.findings = createFindings()
  const checks = await deps.openChecks(call, asked, call.findings)
  await checks.beforeHold().finally(call.onDecided)
  await checks.afterHold()
  // From here on the estimate counts as used, even if the caller hangs up.
  call.tokens = expectedTokens
  if ((request.bodyBytes?.length ?? 0) > largeBodyBytes) await waitForSlice(owner)
  const sent = {
    request: checks.request.body,
    keepsAll,
    headers: pickForwardedHeaders(messageCallerFormat, request.headers),
  }
  // Text without a verdict must not leave this process, so the upstream is not asked to count it.
  const isUnjudged = checks.findings.unjudged.size > 0
  return countInput(
    {
      turn: checks.request.turn,
      keepsAll,
      ...deps.counting.prepare(model, sent),
      ...(isUnjudged && { upstream: null }),
    },
    { owner, cancellation: call.cancellation, patience: 'long' },
  )
}

/** A count has no answer, and its own result is not known before it is checked. */
const unknownToRules = { isStreamed: false, estimate: { tokens: 0 }, hasUnseenInput: false }
