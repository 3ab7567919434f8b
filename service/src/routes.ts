import type { FastifyInstance } from 'fastify'

import { guard } from '#access/guard.ts'
import { listBudgets } from '#access/limit-overrides/budget-store.ts'
import { findOverrides } from '#access/limit-overrides/override-store.ts'
import { serveReadMe } from '#access/members/read-me.ts'
import { serveAccess } from '#access/routes.ts'
import { serveConsole } from '#console/serve-console.ts'
import { serveReadOrganizationCredits } from '#credits/balance/read-organization-credits.ts'
import { serveCreditBalance, serveCredits } from '#credits/routes.ts'
import { serveStripeWebhook } from '#credits/stripe/webhook.ts'
import { serveReadAuditKeys } from '#exports/log/read-keys.ts'
import { serveAuditLog } from '#exports/log/routes.ts'
import { serveExports } from '#exports/sinks/routes.ts'
import { findOrganizationQuotas } from '#gateway-config/config/organization-quotas.ts'
import { servePolicyGateway } from '#gateway-config/routes.ts'
import { limitReads } from '#http/bind.ts'
import { type ErrorDeps, setErrorDialect } from '#http/error-dialect.ts'
import { type Readiness, servePublicInfo } from '#http/health.ts'
import type { Principal } from '#http/principal.ts'
import { serveListOrganizationModels } from '#inference/list-organization-models.ts'
import { serveInferenceRoutes } from '#inference/routes.ts'
import { serveListQuotas } from '#limits/quotas/list-quotas.ts'
import { serveReadLimits } from '#limits/read-limits.ts'
import { tierOf } from '#limits/tiers.ts'
import { servePolicies } from '#policies/routes.ts'
import { serveSignIn } from '#sign-in/routes.ts'
import { serveTraffic } from '#traffic/routes.ts'

import type { House } from './assemble.ts'

/** The URL map: which routes stand behind which guard, and in which dialect they report errors. */
export function serveRoutes(app: FastifyInstance, house: House, readiness: Readiness) {
  const { db, now, log, docsUrl, responsesErrors, metrics, hashKey, mutations, announce } = house
  const { access, policies, limits, credits, inference } = house
  const { authentication, freeTier } = access
  const { countEarlierUsage } = credits
  const errors = { log, docsUrl, responsesErrors, noteRefusal: house.refusals.note }
  void app.register(async (scope) => {
    setErrorDialect(scope, 'admin', errors)
    servePublicInfo(scope, { readiness })
    serveReadAuditKeys(scope, { db, now })
  })
  void app.register(async (scope) => {
    setErrorDialect(scope, 'admin', errors)
    serveStripeWebhook(scope, { db, now, announce, log, metrics, stripe: credits.stripe })
  })
  servePages(app, house, errors)
  void app.register(async (scope) => {
    setErrorDialect(scope, 'admin', errors)
    guard(scope, authentication, limits.limitAdminCall)
    limitReads(scope, house.readGate)
    serveAccess(scope, {
      ...mutations,
      announce,
      metrics,
      hashKey,
      publicUrl: house.config.PUBLIC_URL,
      findOrganizationLimits: (organization) => limits.limitsOf(organization).organization,
      findOrganizationBudget: async (tx, organizationId) =>
        (await findOrganizationQuotas(tx, organizationId)).budget,
      countEarlierUsage,
      sessionIdleMs: access.sessionIdleMs,
      modelIdOf: (name) => inference.catalogue().find(name)?.id,
    })
    serveReadMe(scope, aboutCallers(house))
    servePolicyRoutes(scope, house)
    serveLimits(scope, house)
    serveListOrganizationModels(scope, inference)
    serveReadOrganizationCredits(scope, credits)
    serveCredits(scope, { db, now })
    serveTraffic(scope, { db, now })
    serveEvents(scope, house)
  })
  void app.register(async (scope) => {
    setErrorDialect(scope, 'openai', errors)
    guard(scope, authentication, limits.limitCreditRead)
    serveCreditBalance(scope, credits)
  })
  serveInferenceRoutes(app, {
    errors,
    now,
    metrics,
    authentication,
    freeTier,
    limits,
    inForce: policies.inForce,
    inference,
    overload: house.overload,
  })
}

/** Pages for people. They need no credential: what they show is read by calls that do. */
function servePages(app: FastifyInstance, { signIn, isConsoleOn }: House, errors: ErrorDeps) {
  void app.register(async (scope) => serveSignIn(scope, signIn.deps))
  void app.register(async (scope) => {
    setErrorDialect(scope, 'admin', errors)
    serveConsole(scope, isConsoleOn)
  })
}

/** What callers can read about themselves and this gateway. */
const aboutCallers = ({ db, config, moderation, credits }: House) => ({
  db,
  tierOf,
  billing: config.BILLING,
  areSessionsReadOnly: config.CONSOLE === 'read_only',
  findFeatures: () => ({
    judge: moderation.current().judge !== null,
    tokens: config.JWT_ISSUERS.length > 0,
    payments: credits.stripe.secrets.length > 0,
  }),
})

/** Policies and the policy gateway. The questions of their trials count together with the questions of calls. */
function servePolicyRoutes(
  scope: FastifyInstance,
  { mutations, announce, metrics, policies, limits, moderation, credits, exports, readGate }: House,
) {
  const { scoreText, gridOf, judgeText, findCategories, current } = moderation
  const { countEarlierUsage } = credits
  const questionsOf = (caller: Principal) => ({ questions: limits.openQuestions(caller).scorer })
  servePolicies(scope, {
    ...mutations,
    announce,
    metrics,
    ...policies,
    scoreTextFor: (caller) => (scored, wanted, asker) =>
      scoreText(scored, wanted, { ...asker, ...questionsOf(caller) }),
    gridOf,
    judgeText: (rule, content, asker) =>
      judgeText(rule, content, asker, () => limits.limitTrial(asker.owner)),
    hasJudge: () => current().judge !== null,
    isJudgeScripted: () => current().settings.judge?.adapter === 'scripted',
  })
  servePolicyGateway(scope, {
    ...mutations,
    announce,
    metrics,
    findCategories: (asked, flagged, { caller, ...asker }) =>
      findCategories(asked, flagged, { ...asker, ...questionsOf(caller) }),
    countEarlierUsage,
    countSave: limits.limitGatewaySave,
    // Tenants choose the addresses of guardrails as they choose those of sinks.
    findAddresses: exports.findAddresses,
    privateTargets: exports.privateTargets,
    sendQuestion: moderation.sendQuestion,
    readGate,
  })
}

/** The audit log, and the sinks that it is sent to. */
function serveEvents(
  scope: FastifyInstance,
  { db, mutations, announce, exports, readGate }: House,
) {
  serveAuditLog(scope, { db })
  serveExports(scope, { ...mutations, announce, ...exports, readGate })
}

/** The usage of limits, quotas and budgets. */
function serveLimits(scope: FastifyInstance, { db, limits }: House) {
  serveReadLimits(scope, {
    ...limits,
    findOwnLimits: (organizationId, kind, ids) => findOverrides(db, organizationId, kind, ids),
  })
  serveListQuotas(scope, {
    db,
    countersNow: limits.inferenceCounters.now,
    findQuotas: (organizationId) => findOrganizationQuotas(db, organizationId),
    listBudgets: (of, page) => listBudgets(db, of, page),
  })
}
