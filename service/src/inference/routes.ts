import { createChatCompletion } from '@gatehouse/contract/chat-completion'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { createMessage } from '@gatehouse/contract/message'
import { createResponse } from '@gatehouse/contract/response'
import type { FastifyInstance } from 'fastify'

import type { FreeTier } from '#access/free-tier/free-tier.ts'
import { type Authentication, guard, identify } from '#access/guard.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import { callerFormats } from '#formats/formats.ts'
import type { ErrorDeps } from '#http/error-dialect.ts'
import type { Overload } from '#http/overload/overload.ts'
import { shareOf } from '#http/principal.ts'
import type { RecentRefusals } from '#limits/recent-refusals.ts'
import { dependencyUnavailable } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { InForce } from '#policies-in-force/in-force.ts'
import { pinSnapshots } from '#policies-in-force/pin-snapshot.ts'

import type { CallTarget } from './configured/call-target.ts'
import { type Attempt, countAsRequest, speakInferenceErrors } from './count-attempts.ts'
import type { Inference } from './create-inference.ts'
import { serveModels } from './models.ts'
import { serveCountTokens } from './serve-count-tokens.ts'
import { serveInference } from './serve-inference.ts'
import type { StepDeps } from './steps.ts'

export type InferenceRouteDeps = {
  errors: ErrorDeps
  now: Clock
  overload: Overload
  metrics: Metrics
  authentication: Authentication
  freeTier: Pick<FreeTier, 'identifyCaller'>
  limits: Pick<StepDeps, 'limitInferenceCall'> & { recentRefusals: RecentRefusals }
  inForce: Pick<InForce, 'pin'>
  inference: Inference
}

/** The endpoints that reach a model, with their formats. */
const calls: readonly (readonly [Endpoint, CallerFormatName])[] = [
  [createMessage, 'messages'],
  [createResponse, 'responses'],
  [createChatCompletion, 'chat_completions'],
]

/** The routes for callers of models. Every route that reaches a model goes through the same pipeline. */
export function serveInferenceRoutes(app: FastifyInstance, deps: InferenceRouteDeps) {
  const { authentication, freeTier, inForce, inference, now, metrics, overload } = deps
  const { limitInferenceCall, recentRefusals } = deps.limits
  const { steps, catalogue, counting, readingGate, ending, openCalls } = inference
  const errors = { ...deps.errors, limitInferenceCall }
  const recordAttemptsOf = (target: CallTarget) => (attempt: Attempt, error: unknown) =>
    inference.recordRefusal({ ...attempt, target, model: null }, error, null)
  const requireRecordable = () => {
    if (!inference.canRecord()) throw dependencyUnavailable('audit log')
  }
  for (const [endpoint, name] of calls) {
    const format = callerFormats[name]
    void app.register(async (scope) => {
      const recordAttempt = recordAttemptsOf(format.name)
      speakInferenceErrors(scope, format.errorDialect, { ...errors, recordAttempt })
      identify(scope, authentication, freeTier)
      refuseUnread(scope, (share) => {
        overload.refuseInference(share)
        requireRecordable()
      })
      pinSnapshots(scope, inForce)
      serveInference(scope, endpoint, format, {
        steps,
        catalogue,
        counting,
        readingGate,
        ending,
        openCalls,
        overload,
        recentRefusals,
        now,
        metrics,
        log: deps.errors.log,
        responsesErrors: deps.errors.responsesErrors,
      })
    })
  }
  void app.register(async (scope) => {
    const recordAttempt = recordAttemptsOf('count_tokens')
    speakInferenceErrors(scope, 'count_tokens', { ...errors, recordAttempt })
    identify(scope, authentication)
    refuseUnread(scope, (share) => {
      overload.refuseInference(share)
      requireRecordable()
    })
    pinSnapshots(scope, inForce)
    const { openChecks } = steps
    const counting = { limitInferenceCall, recentRefusals, openChecks, overload }
    serveCountTokens(scope, { ...inference, ...counting })
  })
  void app.register(async (scope) => {
    speakInferenceErrors(scope, 'openai', errors)
    guard(scope, authentication, countAsRequest({ limitInferenceCall }))
    serveModels(scope, { catalogue })
  })
}

/** Refuses calls before their body is read, which is the most expensive part. */
function refuseUnread(scope: FastifyInstance, check: (share: string) => void) {
  scope.addHook('onRequest', (request, _, done) => {
    if (!request.principal) return done()
    try {
      check(shareOf(request.principal))
    } catch (error) {
      request.isCounted = true // a call that is refused here counts nowhere
      throw error
    }
    return done()
  })
}
