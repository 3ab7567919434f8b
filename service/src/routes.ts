import type { FastifyInstance } from 'fastify'

import { type Authentication, type CountCall, guard } from '#access/guard.ts'
import { serveAccess } from '#access/routes.ts'
import type { AccessTools } from '#access/tools.ts'
import { type CreditTools, serveCreditBalance, serveCredits } from '#credits/routes.ts'
import { serveStripeWebhook, type StripeTools } from '#credits/stripe/webhook.ts'
import { type ErrorVoice, speakErrors } from '#http/error-dialect.ts'
import { type Readiness, servePublicInfo } from '#http/health.ts'
import { type InferenceRouteTools, serveInferenceRoutes } from '#inference/routes.ts'
import { type ReadLimitsTools, serveReadLimits } from '#limits/read-limits.ts'
import { servePolicies } from '#policies/routes.ts'
import type { PolicyTools } from '#policies/tools.ts'

export type RouteTools = AccessTools &
  PolicyTools &
  ReadLimitsTools &
  CreditTools &
  StripeTools &
  InferenceRouteTools &
  ErrorVoice & {
    authentication: Authentication
    readiness: Readiness
    limitAdminCall: CountCall
  }

/** The URL map: which routes stand behind which guard, and how they say that something went wrong. */
export function serveRoutes(app: FastifyInstance, tools: RouteTools) {
  void app.register(async (scope) => {
    speakErrors(scope, 'admin', tools)
    servePublicInfo(scope, tools)
  })
  void app.register(async (scope) => {
    speakErrors(scope, 'admin', tools)
    serveStripeWebhook(scope, tools)
  })
  void app.register(async (scope) => {
    speakErrors(scope, 'admin', tools)
    guard(scope, tools.authentication, tools.limitAdminCall)
    serveAccess(scope, tools)
    servePolicies(scope, tools)
    serveReadLimits(scope, tools)
    serveCredits(scope, tools)
  })
  serveCreditBalance(app, tools)
  serveInferenceRoutes(app, tools)
}
