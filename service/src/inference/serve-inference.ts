import type { Endpoint } from '@gatehouse/contract/endpoint'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import { route, sendJson } from '#http/bind.ts'
import { openEventStream } from '#http/event-stream.ts'
import type { LatelyRefused } from '#limits/lately-refused.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Gate } from '#platform/gate.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { started } from '#platform/started.ts'

import type { Call } from './call.ts'
import { forwardedHeaders } from './forwarded-headers.ts'
import type { Answering, Protocol } from './protocol.ts'
import { readAsked, type ReadTools } from './read-asked.ts'
import { type AnswerPart, runInference, type Steps } from './run-inference.ts'
import { untilHungUp } from './until-hung-up.ts'
import { foldAnswer, streamAnswer } from './write-answer.ts'

export type InferenceTools = ReadTools & {
  steps: Steps
  now: Clock
  log: Log
  metrics: Metrics
  latelyRefused: Pick<LatelyRefused, 'of'>
  readingGate: Gate
}

/** Serves one inference endpoint. There is no other way to a model than `runInference`. */
export function serveInference(
  app: FastifyInstance,
  endpoint: Endpoint,
  protocol: Protocol,
  tools: InferenceTools,
) {
  route(
    app,
    endpoint,
    async (request, reply) => {
      const startedAtMs = performance.now()
      using ending = untilHungUp(reply)
      const call = await openCall(request, reply, {
        endpoint,
        protocol,
        tools,
        signal: ending.signal,
      })
      // Waits for the first piece: until then a refusal is a plain error, whatever was asked for (G6.8).
      const parts = await started(runInference(tools.steps, call))
      const upstream = call.line.upstream ?? 'none'
      tools.metrics.firstTokenSeconds.observe(
        { upstream },
        (performance.now() - startedAtMs) / 1000,
      )
      try {
        // Awaited here: until then the caller may hang up.
        return await answer({ call, reply, parts, tools })
      } finally {
        await parts.return?.() // for an answer that nobody has begun to read
      }
    },
    { readsOwnBody: true, answerMaxMs: null },
  )
}

type Opened = {
  call: Call
  reply: FastifyReply
  parts: AsyncIterable<AnswerPart>
  tools: InferenceTools
}

async function answer({ call, reply, parts, tools }: Opened) {
  const { protocol, signal } = call
  const answering = answeringOf(call, tools.now())
  if (!isStreamed(call)) {
    const body = await foldAnswer(parts, protocol, answering)
    return sendJson(reply, 200, JSON.stringify(body))
  }
  const { streamsOpen } = tools.metrics
  streamsOpen.inc()
  try {
    const stream = openEventStream(reply)
    noteFailure(await streamAnswer(parts, stream, { protocol, answering, signal }), call, tools.log)
  } finally {
    streamsOpen.dec()
  }
  return reply
}

const isStreamed = ({ asked }: Call) => 'isStreamed' in asked && asked.isStreamed

/** Its status has gone out as 200 long ago: only the log can tell. */
function noteFailure(error: ApiError | undefined, { line, requestId }: Call, log: Log) {
  if (!error) return
  line.code = error.code
  if (error.status >= 500 && error.cause !== undefined) log.problem(error.code, error, requestId)
}

function answeringOf({ requestId, asked }: Call, createdAt: Date): Answering {
  if (!('turn' in asked)) throw new Error('a call that was refused has no answer')
  return { requestId, createdAt, model: asked.modelName, request: asked.request }
}

type Opening = {
  endpoint: Endpoint
  protocol: Protocol
  tools: InferenceTools
  signal: AbortSignal
}

/** Up to here a body is read in no time; beyond, organizations take turns. */
const largeBodyBytes = 64 * 1024

/** Reading costs most of what a refused call costs: who is out of requests is not read. */
function refuseUnread(request: FastifyRequest, reply: FastifyReply, tools: InferenceTools) {
  const refused = request.principal && tools.latelyRefused.of(request.principal)
  if (!refused) return
  request.isCounted = true // as nothing, like every call that is refused
  void reply.headers(refused.headers)
  throw refused.refusal
}

async function openCall(
  request: FastifyRequest,
  reply: FastifyReply,
  { endpoint, protocol, tools, signal }: Opening,
): Promise<Call> {
  const { principal, freeCaller, policies, bodyBytes, line } = request
  if (!principal || !policies) throw new Error('unguarded endpoint')
  const isLarge = (bodyBytes?.length ?? 0) > largeBodyBytes
  if (isLarge) refuseUnread(request, reply, tools)
  const read = () => readAsked(tools, { endpoint, protocol, bytes: bodyBytes, signal })
  const asked = await (isLarge ? tools.readingGate(principal.organizationId, read) : read())
  // From here on the pipeline counts it.
  request.isCounted = true
  return {
    ...{ requestId: request.id, endpoint, principal, freeCaller, protocol, policies },
    ...{ asked, signal, line },
    headers: forwardedHeaders(request),
    addHeaders: (headers) => void reply.headers(headers),
  }
}
