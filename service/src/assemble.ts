import { randomUUID } from 'node:crypto'

import { createAccess } from '#access/create-access.ts'
import { createKeyHasher, type HashKey } from '#access/secret.ts'
import { createAnnouncer } from '#audit/announce.ts'
import { createEventWriter } from '#audit/event-writer.ts'
import { followChanges } from '#audit/follow-changes.ts'
import { createCredits } from '#credits/create-credits.ts'
import type { MutationDeps } from '#http/bind-mutation.ts'
import { createBodyBudget } from '#http/body-budget.ts'
import { createOverload } from '#http/overload/overload.ts'
import type { Principal } from '#http/principal.ts'
import { createInference } from '#inference/create-inference.ts'
import { createLimits } from '#limits/create-limits.ts'
import { callLimits } from '#limits/limit-calls.ts'
import { createGate } from '#platform/gate.ts'
import { createSecretBox } from '#platform/secrets.ts'
import { checkRuleForm } from '#policies/rule.ts'
import { followPolicies } from '#policy-gateway/follow-policies.ts'

import type { Config } from './config.ts'
import { createBalanceReader } from './credits/balance/balance-reader.ts'
import { type Edges, type Foundation, layFoundation } from './foundation.ts'

/** Builds everything a process is made of, one feature per member. The only place that does. */
export function assemble(config: Config, edges: Edges = {}) {
  const foundation = layFoundation(config, edges)
  const { now, log, metrics, db } = foundation
  const hashKey = createKeyHasher(config.MASTER_KEYS)
  const access = assembleAccess(foundation, hashKey)
  const policies = assemblePolicies(foundation)
  const limits = assembleLimits(foundation, policies.others)
  const credits = assembleCredits(foundation)
  const events = assembleEvents(foundation)
  const inference = assembleInference(foundation, { access, credits, limits, events })
  // Only a process that answers callers needs policies and limits, and counts as one that runs them.
  const serving = config.ROLES.includes('api') ? [policies.subscriber, limits.subscriber] : []
  const subscribers = [...access.subscribers, ...serving]
  const follower = followChanges({ db: foundation.changesDb, now, log, metrics, subscribers })
  const mutations: MutationDeps = {
    db,
    now,
    secretBox: createSecretBox(config.MASTER_KEYS),
    docsUrl: config.DOCS_URL,
    gate: createDatabaseGate(Math.ceil(config.DATABASE_POOL_SIZE / 3)),
  }
  return {
    config,
    processNumber: foundation.processNumber,
    now,
    log,
    metrics,
    db,
    docsUrl: config.DOCS_URL,
    responsesErrors: config.RESPONSES_ERRORS,
    hashKey,
    mutations,
    bodies: {
      budget: createBodyBudget(config.BODY_MEMORY_MB * 1024 * 1024),
      concurrencyOf: (principal: Principal) =>
        principal.kind === 'admin_key'
          ? config.ADMIN_CONCURRENT_REQUESTS
          : limits.limitsOf(principal).organization.concurrent_requests,
    },
    overload: createOverload(metrics),
    readGate: createDatabaseGate(Math.ceil(config.DATABASE_POOL_SIZE / 5)),
    announce: createAnnouncer(now, exchangeHints(foundation, follower.wake)),
    follower,
    access,
    policies,
    limits,
    credits,
    events,
    inference,
    /** Credits before the rest: they wait for the calls that are still open, which use everything else. */
    async stop() {
      limits.stop() // its timers only
      for (const part of [credits, inference, events, follower, policies, access, foundation]) {
        await part.stop()
      }
    },
  }
}
export type House = ReturnType<typeof assemble>

/** So many connections of the pool may one organization hold; the lookup of credentials needs the others. */
const createDatabaseGate = (atOnce: number) => createGate({ atOnce, waitingMax: 100, waitMs: 5000 })

function assembleAccess(
  { config, db, now, steadyNow, log, metrics, egress, files }: Foundation,
  hashKey: HashKey,
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
    issuers: config.JWT_ISSUERS,
    outageMs: config.KEY_CACHE_OUTAGE_SECONDS * 1000,
    freeTier: {
      requestsPerDay: config.FREE_REQUESTS_PER_DAY,
      creditsMax: BigInt(config.FREE_REQUEST_CREDITS_MAX),
    },
  })
}

function assemblePolicies({ config, changesDb, now, log, metrics, files }: Foundation) {
  const checkRule = checkRuleForm
  return {
    ...followPolicies({ db: changesDb, now, log, metrics, files, checkRule }),
    checkRule,
    policiesMax: config.POLICIES_MAX,
  }
}

function assembleLimits(
  { config, redis, now, steadyNow, log, metrics }: Foundation,
  otherProcesses: () => number,
) {
  return createLimits({
    redis,
    namespace: config.REDIS_NAMESPACE,
    now,
    steadyNow,
    log,
    metrics,
    processes: () => otherProcesses() + 1,
    limitsFile: config.LIMITS_FILE,
    adminCallLimits: callLimits({
      perCredential: config.ADMIN_REQUESTS_PER_MINUTE,
      perOrganization: config.ADMIN_REQUESTS_PER_MINUTE_ORGANIZATION,
      concurrent: config.ADMIN_CONCURRENT_REQUESTS,
    }),
  })
}

function assembleCredits({ config, db, creditsDb, now, log, metrics, files }: Foundation) {
  const balances = createBalanceReader({ db, now, log })
  const calls = createCredits({
    db: creditsDb,
    billing: config.BILLING,
    files,
    hasFolder: config.STATE_DIRECTORY !== undefined,
    now,
    log,
    metrics,
    onBalance: balances.setPosted,
  })
  return {
    /** Holds and settles what calls cost. */
    calls,
    balances,
    /** Calls are paid from the balance, so it says what is left for them. */
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

/** Writes the events of calls that have no settlement. */
const assembleEvents = ({ config, creditsDb, now, log, metrics, files }: Foundation) =>
  createEventWriter({
    db: creditsDb,
    files,
    hasFolder: config.STATE_DIRECTORY !== undefined,
    now,
    log,
    metrics,
  })

type InferenceNeeds = {
  events: ReturnType<typeof assembleEvents>
  access: ReturnType<typeof assembleAccess>
  credits: ReturnType<typeof assembleCredits>
  limits: ReturnType<typeof assembleLimits>
}

function assembleInference(foundation: Foundation, needs: InferenceNeeds) {
  const { access, credits, limits, events } = needs
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
  })
}

/** After a change this process polls at once, and asks the others to. Redis may be away; polls cover it. */
function exchangeHints({ redis, config, log, metrics }: Foundation, wake: () => void): () => void {
  if (!redis) return wake
  const channel = `${config.REDIS_NAMESPACE}:changes`
  const ourselves = randomUUID()
  const onHint = (sender: string) => {
    if (sender !== ourselves) wake()
  }
  redis
    .subscribe(channel, onHint)
    .catch((error: unknown) => log.problem('hints_not_subscribed', error))
  return () => {
    wake()
    redis.publish(channel, ourselves).catch(() => metrics.hintsLost.inc())
  }
}
