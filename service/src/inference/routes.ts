import { createChatCompletion } from '@gatehouse/contract/chat-completion'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { createMessage } from '@gatehouse/contract/message'
import { createResponse } from '@gatehouse/contract/response'
import type { FastifyInstance } from 'fastify'

import type { FreeTier } from '#access/free-tier.ts'
import { type Authentication, guard, identify } from '#access/guard.ts'
import type { ErrorVoice } from '#http/error-dialect.ts'
import type { LatelyRefused } from '#limits/lately-refused.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { InForce } from '#policy-gateway/in-force.ts'
import { pinSnapshots } from '#policy-gateway/pin-snapshot.ts'

import { countAsRequest, speakInferenceErrors } from './count-attempts.ts'
import { serveCountTokens } from './count/serve-count-tokens.ts'
import type { Inference } from './create-inference.ts'
import { serveModels } from './models.ts'
import { protocols } from './protocols.ts'
import { serveInference } from './serve-inference.ts'
import type { StepTools } from './steps.ts'
import type { ProtocolName } from './turn.ts'

export type InferenceRouteTools = ErrorVoice &
  Pick<StepTools, 'limitInferenceCall'> & {
    authentication: Authentication
    freeTier: Pick<FreeTier, 'callerOf'>
    policies: { inForce: Pick<InForce, 'pin'> }
    inference: Inference
    latelyRefused: LatelyRefused
    now: Clock
    metrics: Metrics
  }

/** Which endpoint speaks which format. */
const calls: readonly (readonly [Endpoint, ProtocolName])[] = [
  [createMessage, 'messages'],
  [createResponse, 'responses'],
  [createChatCompletion, 'chat_completions'],
]

/** The routes for model callers. Each that reaches a model goes through the one pipeline. */
export function serveInferenceRoutes(app: FastifyInstance, tools: InferenceRouteTools) {
  for (const [endpoint, name] of calls) {
    void app.register(async (scope) => {
      speakInferenceErrors(scope, endpoint.dialect, tools)
      identify(scope, tools.authentication, tools.freeTier)
      pinSnapshots(scope, tools.policies.inForce)
      serveInference(scope, endpoint, protocols[name], { ...tools, ...tools.inference })
    })
  }
  void app.register(async (scope) => {
    speakInferenceErrors(scope, 'count_tokens', tools)
    identify(scope, tools.authentication)
    pinSnapshots(scope, tools.policies.inForce)
    serveCountTokens(scope, { ...tools, ...tools.inference })
  })
  void app.register(async (scope) => {
    speakInferenceErrors(scope, 'openai', tools)
    guard(scope, tools.authentication, countAsRequest(tools))
    serveModels(scope, tools.inference)
  })
}
