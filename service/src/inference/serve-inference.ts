import type { Endpoint } from '@gatehouse/contract/endpoint'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import type { Answering, CallerFormat } from '#formats/format.ts'
import { pickForwardedHeaders } from '#formats/forwarded-headers.ts'
import { route, sendJson } from '#http/bind.ts'
import { hasErrorObject, type ResponsesErrors } from '#http/error-dialect.ts'
import { openEventStream } from '#http/event-stream.ts'
import type { Overload } from '#http/overload/overload.ts'
import { shareOf } from '#http/principal.ts'
import { largeBodyBytes } from '#http/read-json.ts'
import type { RecentRefusals } from '#limits/recent-refusals.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import type { Clock } from '#platform/clock.ts'
import type { Gate } from '#platform/lines/gate.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { started } from '#platform/started.ts'

import { readPolicySubject } from './configured/policy-subject.ts'
import { refuseAgain } from './count-attempts.ts'
import type { InferenceCall } from './inference-call.ts'
import { billedInput, type ModelRequest, requireRequest } from './model-request.ts'
import type { OpenCalls } from './open-calls.ts'
import { type ReadDeps, readModelRequest } from './read-model-request.ts'
import { type AnswerPart, runInference, type CallSteps } from './run-inference.ts'
import { watchCaller } from './watch-caller.ts'
import { foldAnswer, streamAnswer } from './write-answer.ts'

export type InferenceDeps = ReadDeps & {
  steps: CallSteps
  now: Clock
  log: Log
  metrics: Metrics
  recentRefusals: Pick<RecentRefusals, 'of'>
  readingGate: Gate
  overload: Pick<Overload, 'waitForTurn'>
  ending: Cancellation
  openCalls: Pick<OpenCalls, 'begin'>
  responsesErrors: ResponsesErrors
}

/** Serves one inference endpoint. Every call to a model goes through `runInference`. */
export function serveInference(
  app: FastifyInstance,
  endpoint: Endpoint,
  format: CallerFormat,
  deps: InferenceDeps,
) {
  route(
    app,
    endpoint,
    async (request, reply) => {
      const startedAtMs = performance.now()
      using _open = deps.openCalls.begin()
      using caller = watchCaller(reply, deps.ending)
      const { cancellation } = caller
      const read = await openCall(request, reply, {
        endpoint,
        format,
        deps,
        cancellation,
      })
      using turn = await deps.overload.waitForTurn(shareOf(read.principal), cancellation)
      const call = { ...read, onDecided: turn.admit }
      // Waits for the first piece. Until then a refusal is a plain error, even of a streamed call.
      const parts = await started(runInference(deps.steps, call))
      const upstream = call.line.upstream ?? 'none'
      deps.metrics.firstTokenSeconds.observe({ upstream }, (performance.now() - startedAtMs) / 1000)
      try {
        // Awaited here, because the caller may hang up until the answer is sent.
        return await answer({ call, request, reply, parts, deps })
      } finally {
        await parts.return?.() // ends an answer that was not read to its end
      }
    },
    { readsOwnBody: true, answerMaxMs: null },
  )
}

type StartedCall = {
  call: InferenceCall
  request: FastifyRequest
  reply: FastifyReply
  parts: AsyncIterable<AnswerPart>
  deps: InferenceDeps
}

async function answer({ call, request, reply, parts, deps }: StartedCall) {
  const { format, cancellation } = call
  const asked = requireRequest(call.parsed)
  const answering = {
    ...toAnswering(call.requestId, asked, deps.now()),
    hasErrorEvent:
      format.errorDialect === 'responses' && hasErrorObject(deps.responsesErrors, request, reply),
  }
  if (!asked.isStreamed) {
    return sendJson(reply, 200, await foldAnswer(parts, format, answering))
  }
  const { streamsOpen } = deps.metrics
  streamsOpen.inc()
  try {
    const stream = openEventStream(reply)
    logFailure(
      await streamAnswer(parts, stream, { format, answering, cancellation }),
      call,
      deps.log,
    )
  } finally {
    streamsOpen.dec()
  }
  return reply
}

/** A stream that fails has already been answered with 200, so only the log shows the failure. */
function logFailure(error: ApiError | undefined, { line, requestId }: InferenceCall, log: Log) {
  if (!error) return
  line.code = error.code
  if (error.status >= 500 && error.cause !== undefined) log.problem(error.code, error, requestId)
}

const toAnswering = (requestId: string, request: ModelRequest, createdAt: Date): Answering => ({
  requestId,
  createdAt,
  model: request.modelName,
  inputTokens: billedInput(request),
  request: request.body,
})

type CallOptions = {
  endpoint: Endpoint
  format: CallerFormat
  deps: InferenceDeps
  cancellation: Cancellation
}

async function openCall(
  request: FastifyRequest,
  reply: FastifyReply,
  { endpoint, format, deps, cancellation }: CallOptions,
): Promise<Omit<InferenceCall, 'onDecided'>> {
  const { principal, freeCaller, policies, bodyBytes, line } = request
  if (!principal || !policies) throw new Error('unguarded endpoint')
  // The large bodies of one organization wait for each other, not for those of other organizations.
  const isLarge = (bodyBytes?.length ?? 0) > largeBodyBytes
  if (isLarge) refuseAgain(request, reply, deps)
  const headers = pickForwardedHeaders(format, request.headers)
  const isAnonymous = freeCaller !== null
  const owner = shareOf(principal)
  const sent = {
    endpoint,
    format,
    bytes: bodyBytes,
    headers,
    isAnonymous,
    allowedModels: principal.allowedModels,
    owner,
    cancellation,
  }
  const { policySubject, error } = readPolicySubject(request.headers, principal)
  const read = () => readModelRequest(deps, sent)
  const parsed = await (isLarge ? deps.readingGate(owner, read) : read())
  // From here on the pipeline counts the attempt.
  request.isCounted = true
  return {
    requestId: request.id,
    arrivedAtMs: request.arrivedAtMs,
    endpoint,
    principal,
    freeCaller,
    target: format.name,
    format,
    policies,
    policySubject,
    parsed: error ? { ok: false, error } : parsed,
    cancellation,
    ending: deps.ending,
    line,
    headers,
    counted: null,
    addHeaders: (headers) => void reply.headers(headers),
  }
}
