import { setTimeout as sleep } from 'node:timers/promises'

import type { ErrorCode } from '@gatehouse/contract/error'
import type { Dialect } from '@gatehouse/contract/error-body'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import type { CountCall } from '#access/guard.ts'
import { type ErrorDeps, sendError } from '#http/error-dialect.ts'
import type { Principal } from '#http/principal.ts'
import type { RecentRefusals } from '#limits/recent-refusals.ts'
import type { ApiError } from '#platform/api-error.ts'
import { toApiError } from '#platform/to-api-error.ts'
import type { Pinned } from '#policies-in-force/in-force.ts'

import { isBlock, isUnjudgedError } from './enforcement/refusals.ts'
import type { StepDeps } from './steps.ts'

type Deps = ErrorDeps &
  Pick<StepDeps, 'limitInferenceCall'> & {
    /** Writes the event of a failed attempt. Absent on routes whose attempts leave no event. */
    recordAttempt?(attempt: Attempt, error: unknown): Promise<void>
  }
export type Attempt = {
  requestId: string
  arrivedAtMs: number
  principal: Principal
  /** Null if the attempt failed before the policies were known. */
  policies: Pinned | null
}

/**
 * Sets the error handler of a scope of inference routes. A request that fails before the pipeline, for example
 * because its body is too large, is still an attempt: it counts, and its answer has the rate-limit headers
 * (docs/specification/limits.md#failed-attempts).
 */
export function speakInferenceErrors(app: FastifyInstance, dialect: Dialect, deps: Deps) {
  app.decorateRequest('isCounted', false)
  app.setErrorHandler(async (thrown, request, reply) => {
    const { code } = toApiError(thrown)
    // A 429 counts nowhere: a client that retries would lock itself out.
    if (code !== 'concurrency_limit_exceeded')
      await countFailed(request, reply, { ...deps, thrown })
    if (refusedBodies.has(code)) await discardBody(request)
    if (isBlock(thrown) || isUnjudgedError(thrown)) tellRefusal(reply, toApiError(thrown))
    return sendError(request, reply, { ...deps, dialect, thrown })
  })
}

/** The header may already name the part of a rollout that the call is in. */
function tellRefusal(reply: FastifyReply, { policy }: ApiError) {
  const decision = policy?.escalation_path === undefined ? 'refuse' : 'escalate'
  const [, mode] = String(reply.getHeader('x-policy-decision')).split(';')
  void reply.header('x-policy-decision', mode === undefined ? decision : `${decision};${mode}`)
}

/** The errors of callers whose body was not read to its end. */
const refusedBodies = new Set<ErrorCode>([
  'request_too_large',
  'overloaded',
  'concurrency_limit_exceeded',
])

const discardMaxMs = 20_000

/**
 * With `connection: close` the connection closes after the answer, so a client that is still sending would see a broken pipe
 * and no answer. We read and discard the rest of the body first, for a limited time.
 */
async function discardBody({ raw }: FastifyRequest) {
  if (raw.headers.connection?.toLowerCase() !== 'close') return
  if (raw.readableEnded || raw.destroyed) return
  const ended = new Promise((resolve) => raw.once('end', resolve).once('close', resolve))
  raw.resume()
  await Promise.race([ended, sleep(discardMaxMs, undefined, { ref: false })])
}

/** Counts a call that reaches no model as one request of the caller's limits. */
export function countAsRequest({
  limitInferenceCall,
}: Pick<Deps, 'limitInferenceCall'>): CountCall {
  return async (request, reply, principal) => {
    request.isCounted = true
    const attempt = { requestId: request.id, principal, tokens: 0 }
    const { headers, slot, refusal } = await limitInferenceCall(attempt)
    void reply.headers(headers)
    await slot?.settle(0)
    return refusal
  }
}

/** Refuses a caller that was refused a moment ago before its body is read, because reading is the most expensive part. */
export function refuseAgain(
  request: FastifyRequest,
  reply: FastifyReply,
  { recentRefusals }: { recentRefusals: Pick<RecentRefusals, 'of'> },
) {
  const refused = request.principal && recentRefusals.of(request.principal)
  if (!refused) return
  request.isCounted = true // a refused call does not count
  void reply.headers(refused.headers)
  throw refused.refusal
}

type FailedAttempt = Deps & { thrown: unknown }

async function countFailed(request: FastifyRequest, reply: FastifyReply, deps: FailedAttempt) {
  const { id: requestId, arrivedAtMs, principal, policies, isCounted } = request
  if (!principal || isCounted) return
  request.isCounted = true
  const attempt = { requestId, principal, tokens: 0 }
  const { headers, slot, refusal } = await deps.limitInferenceCall(attempt)
  void reply.headers(headers)
  await slot?.settle(0)
  // A call that is refused for lack of memory leaves no event, so that such calls cannot fill the log.
  const isShed = toApiError(deps.thrown).code === 'overloaded'
  if (refusal || isShed) return
  await deps.recordAttempt?.({ requestId, arrivedAtMs, principal, policies }, deps.thrown)
}

declare module 'fastify' {
  interface FastifyRequest {
    /** True once the limiter has counted this attempt. */
    isCounted: boolean
  }
}
