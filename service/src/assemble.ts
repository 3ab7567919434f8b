import { apiVersion } from '@gatehouse/contract/openapi'

import { createAccess } from '#access/create-access.ts'
import { createKeyHasher, type HashKey } from '#access/secret.ts'
import { createAnnouncer } from '#audit/announce.ts'
import { exchangeHints } from '#audit/exchange-hints.ts'
import { followChanges, type Subscriber } from '#audit/follow-changes.ts'
import { createBudgetAlerts } from '#credits/budgets/budget-alerts.ts'
import { type BudgetSubject, seedQuotaUsage } from '#credits/budgets/quota-usage-store.ts'
import { createCredits } from '#credits/create-credits.ts'
import type { MutationDeps } from '#http/bind-mutation.ts'
import { createBodyBudget } from '#http/body-budget.ts'
import { createOverload } from '#http/overload/overload.ts'
import { isAdministrator, type Principal } from '#http/principal.ts'
import { createInference } from '#inference/create-inference.ts'
import { createLimits } from '#limits/create-limits.ts'
import { callLimits } from '#limits/limit-calls.ts'
import { periodAt } from '#limits/quotas/calendar.ts'
import { threadEntry } from '#platform/assets.ts'
import type { Tx } from '#platform/database.ts'
import { createGate } from '#platform/lines/gate.ts'
import { createSecretBox, type SecretBox } from '#platform/secrets.ts'
import { createThreadPool } from '#platform/thread-pool.ts'
import { followPolicies } from '#policies-in-force/follow-policies.ts'
import { guardrailsOf } from '#policies-in-force/guardrails-of.ts'
import { createRuleCheck } from '#policies/rules/check-rule.ts'
import { createPatternCosts } from '#policies/rules/pattern-costs.ts'
import { withThreads } from '#policies/rules/search-in-threads.ts'
import { loadPatternEngine } from '#text/pattern-engine.ts'
import { createRefusalCounter } from '#traffic/refusals/record-refusals.ts'

import {
  assembleEvents,
  assembleExports,
  assembleModeration,
  assembleSignIn,
} from './assemble-outside.ts'
import type { Config } from './config.ts'
import { createBalanceReader } from './credits/balance/balance-reader.ts'
import { type Edges, type Foundation, layFoundation } from './foundation.ts'

/** Builds everything a process is made of, one feature per member. The only place that does. */
export function assemble(config: Config, edges: Edges = {}) {
  const foundation = layFoundation(config, edges)
  const { now, log, metrics, db, installation } = foundation
  const hashKey = createKeyHasher(config.MASTER_KEYS)
  const access = assembleAccess(foundation, hashKey, installation.noteProof)
  const moderation = assembleModeration(foundation)
  const secretBox = createSecretBox(config.MASTER_KEYS)
  const policies = assemblePolicies(foundation, secretBox, moderation)
  const limits = assembleLimits(foundation, policies.others)
  const credits = assembleCredits(foundation)
  const events = assembleEvents(foundation)
  const needs = { access, credits, limits, events, policies, moderation }
  const inference = assembleInference(foundation, needs)
  // Only a process that answers callers needs policies and limits, and counts as one that runs them.
  const serving = config.ROLES.includes('api') ? [policies.subscriber, limits.subscriber] : []
  const subscribers = [...access.subscribers, ...serving]
  const { follower, hints, announce } = assembleChanges(foundation, subscribers)
  const signIn = assembleSignIn(foundation, { access, hashKey, announce, secretBox })
  const mutations = assembleMutations(foundation, secretBox)
  const refusals = createRefusalCounter(foundation)
  return {
    config,
    processNumber: foundation.processNumber,
    now,
    log,
    metrics,
    db,
    installation,
    stateDirectory: foundation.stateDirectory,
    self: foundation.self,
    docsUrl: config.DOCS_URL,
    isConsoleOn: config.CONSOLE !== 'false' && config.PUBLIC_URL !== undefined,
    refusals,
    responsesErrors: config.RESPONSES_ERRORS,
    hashKey,
    mutations,
    bodies: assembleBodies(config, limits),
    overload: createOverload(metrics),
    readGate: createDatabaseGate(Math.ceil(config.DATABASE_POOL_SIZE / 5)),
    announce,
    hints,
    follower,
    access,
    signIn,
    policies,
    limits,
    credits,
    events,
    moderation,
    inference,
    exports: assembleExports(foundation),
    /** Credits stop first: they wait for the calls that are still open, and those use everything else. */
    async stop() {
      limits.stop() // stops only its timers
      const calls = [credits, inference, moderation, events, follower]
      const rest = [policies, signIn, access, refusals, foundation]
      for (const part of [...calls, ...rest]) await part.stop()
    },
  }
}
export type House = ReturnType<typeof assemble>

/** How this process learns what others have changed, and tells them what it has changed itself. */
function assembleChanges(foundation: Foundation, subscribers: readonly Subscriber[]) {
  const { config, changesDb, now, log, metrics } = foundation
  const follower = followChanges({ db: changesDb, now, log, metrics, subscribers })
  const channel = `${config.REDIS_NAMESPACE}:changes`
  const hints = exchangeHints({ ...foundation, channel, wake: follower.wake })
  return { follower, hints, announce: createAnnouncer(now, hints.send) }
}

/** Limits how many connections of the pool one organization may hold, because the lookup of credentials needs the others. */
const createDatabaseGate = (atOnce: number) => createGate({ atOnce, waitingMax: 100, waitMs: 5000 })

const assembleMutations = (
  { config, db, now }: Foundation,
  secretBox: SecretBox,
): MutationDeps => ({
  db,
  now,
  secretBox,
  docsUrl: config.DOCS_URL,
  gate: createDatabaseGate(Math.ceil(config.DATABASE_POOL_SIZE / 3)),
})

const assembleBodies = (config: Config, limits: ReturnType<typeof assembleLimits>) => ({
  budget: createBodyBudget(config.BODY_MEMORY_MB * 1024 * 1024),
  concurrencyOf: (principal: Principal) =>
    isAdministrator(principal)
      ? config.ADMIN_CONCURRENT_REQUESTS
      : limits.limitsOf(principal).organization.concurrent_requests,
})

function assembleAccess(
  { config, db, now, steadyNow, log, metrics, egress, files }: Foundation,
  hashKey: HashKey,
  onKeyVerified: (version: number) => void,
) {
  return createAccess({
    db,
    now,
    steadyNow,
    log,
    metrics,
    egress,
    files,
    masterKeys: config.MASTER_KEYS,
    hashKey,
    onKeyVerified,
    issuers: config.JWT_ISSUERS,
    outageMs: config.KEY_CACHE_OUTAGE_SECONDS * 1000,
    publicUrl: config.PUBLIC_URL,
    areSessionsReadOnly: config.CONSOLE === 'read_only',
    sessionMaxMs: config.SESSION_MINUTES * 60_000,
    sessionIdleMs: config.SESSION_IDLE_MINUTES * 60_000,
    freeTier: {
      requestsPerDay: config.FREE_REQUESTS_PER_DAY,
      creditsMax: BigInt(config.FREE_REQUEST_CREDITS_MAX),
    },
  })
}

function assemblePolicies(
  { config, changesDb, now, log, metrics, files, self }: Foundation,
  secretBox: SecretBox,
  moderation: ReturnType<typeof assembleModeration>,
) {
  // Threads of their own, so that rules that take long to check keep no text waiting.
  const checking = createThreadPool({
    entry: threadEntry,
    threadsMax: 2,
    waitingMax: 100,
    waitingTotalMax: 200,
    graceMs: 0, // a pattern that is too slow cannot be stopped in any other way
  })
  const searching = createThreadPool({
    entry: threadEntry,
    threadsMax: 2,
    threadsPerOwnerMax: 1, // so that one organization's searches never take both threads
    waitingMax: 1000, // each streamed answer may wait for a search
    waitingTotalMax: 4000,
  })
  const costs = createPatternCosts(checking)
  const engine = withThreads(loadPatternEngine(), { threads: searching, costs })
  const followed = followPolicies({
    db: changesDb,
    now,
    log,
    metrics,
    files,
    engine,
    secretBox,
    hasJudge: () => moderation.current().judge !== null,
    processFacts: () => ({
      release: apiVersion,
      isReady: self.isReady,
      countsLocally: self.countsLocally(),
    }),
  })
  return {
    ...followed,
    engine,
    checkRule: createRuleCheck({ costs }),
    policiesMax: config.POLICIES_MAX,
    patternCostMaxMs: config.PATTERN_COST_MS_MAX,
    async stop() {
      await followed.stop()
      await Promise.all([checking.close(), searching.close()])
    },
  }
}

function assembleLimits(
  { config, creditsDb, redis, now, steadyNow, log, metrics, self }: Foundation,
  otherProcesses: () => number,
) {
  const limits = createLimits({
    db: creditsDb,
    redis,
    namespace: config.REDIS_NAMESPACE,
    now,
    steadyNow,
    log,
    metrics,
    processes: () => otherProcesses() + 1,
    limitsFile: config.LIMITS_FILE,
    savesPerMinute: config.GATEWAY_SAVES_PER_MINUTE,
    adminCallLimits: callLimits({
      perCredential: config.ADMIN_REQUESTS_PER_MINUTE,
      perOrganization: config.ADMIN_REQUESTS_PER_MINUTE_ORGANIZATION,
      concurrent: config.ADMIN_CONCURRENT_REQUESTS,
    }),
  })
  self.countsLocally = () => !limits.areLimitsExact()
  return limits
}

function assembleCredits(foundation: Foundation) {
  const { config, db, creditsDb, now, log, metrics, files } = foundation
  const balances = createBalanceReader({ db, now, log })
  const calls = createCredits({
    db: creditsDb,
    billing: config.BILLING,
    files,
    hasFolder: config.STATE_DIRECTORY !== undefined,
    mayDeliver: foundation.stateDirectory.isOwn,
    now,
    log,
    metrics,
    onBalance: balances.setPosted,
  })
  return {
    /** Holds and settles what calls cost. */
    calls,
    noteBudgets: createBudgetAlerts({ db: creditsDb, now, log, metrics }),
    /** Counts what a subject has used this month before it gets its first budget. */
    countEarlierUsage: (tx: Tx, subject: BudgetSubject) =>
      seedQuotaUsage(tx, subject, periodAt('monthly', now().getTime()).firstDay),
    balances,
    /** Whether calls are paid from the balance, which then says what is left for them. */
    isPrepaid: config.BILLING === 'prepaid',
    holdGraceMs: config.CREDIT_HOLD_GRACE_SECONDS * 1000,
    stripe: {
      secrets: config.STRIPE_WEBHOOK_SECRETS ?? [],
      mode: config.STRIPE_MODE,
      plans: config.STRIPE_PLANS,
    },
    async stop() {
      await calls.stop()
      await balances.stop()
    },
  }
}

type InferenceNeeds = {
  moderation: ReturnType<typeof assembleModeration>
  events: ReturnType<typeof assembleEvents>
  access: ReturnType<typeof assembleAccess>
  credits: ReturnType<typeof assembleCredits>
  limits: ReturnType<typeof assembleLimits>
  policies: ReturnType<typeof assemblePolicies>
}

function assembleInference(foundation: Foundation, needs: InferenceNeeds) {
  const { access, credits, limits, events, policies, moderation } = needs
  const { config, redis, now, steadyNow, log, metrics, environment, files } = foundation
  return createInference({
    redis,
    namespace: config.REDIS_NAMESPACE,
    now,
    steadyNow,
    findAddresses: foundation.findAddresses,
    log,
    metrics,
    environment,
    files,
    modelsFile: config.MODELS_FILE,
    credits: credits.calls,
    holdGraceMs: credits.holdGraceMs,
    freeTier: access.freeTier,
    events,
    limitInferenceCall: limits.limitInferenceCall,
    noteBudgets: credits.noteBudgets,
    openQuestions: limits.openQuestions,
    engine: policies.engine,
    moderation: moderation.current,
    local: moderation.local,
    askGuardrail: moderation.askGuardrail,
    guardrailsOf,
  })
}
