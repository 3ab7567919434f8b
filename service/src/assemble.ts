import { randomUUID } from 'node:crypto'

import { createJwtAuthentication, standingDependsOn } from '#access/authenticate-jwt.ts'
import { createKeyAuthentication, keyDependsOn } from '#access/authenticate-key.ts'
import type { FoundKey, Standing } from '#access/credential-store.ts'
import { createFailedAttempts } from '#access/failed-attempts.ts'
import { createFreeTier } from '#access/free-tier.ts'
import type { Authentication } from '#access/guard.ts'
import { keysOfIssuer } from '#access/issuer-keys.ts'
import { keepKeys } from '#access/keep-keys.ts'
import { createKeyUses, type KeyUses } from '#access/key-uses.ts'
import { createLookupCache, type LookupCache } from '#access/lookup-cache.ts'
import { createKeyHasher, type HashKey } from '#access/secret.ts'
import { createAnnouncer } from '#audit/announce.ts'
import { followChanges } from '#audit/follow-changes.ts'
import { createBalanceCopies } from '#credits/balance-copies.ts'
import { createCredits } from '#credits/create-credits.ts'
import { createInference } from '#inference/create-inference.ts'
import { createLimits } from '#limits/create-limits.ts'
import { callLimits } from '#limits/limit-calls.ts'
import { type Clock, systemClock } from '#platform/clock.ts'
import { connectDatabase, type Db } from '#platform/database.ts'
import { createEgress, type Egress } from '#platform/egress.ts'
import { createGate } from '#platform/gate.ts'
import { createLog, type Log } from '#platform/log.ts'
import { createMetrics, type Metrics } from '#platform/metrics.ts'
import { connectRedis, type Redis } from '#platform/redis.ts'
import { createSecretBox, deriveKeys } from '#platform/secrets.ts'
import { createTrustedFiles, type TrustedFiles } from '#platform/trusted-file.ts'
import { checkRuleForm } from '#policies/rule.ts'
import { followPolicies } from '#policy-gateway/follow-policies.ts'

import type { Config } from './config.ts'

type Edges = {
  now?: Clock
  log?: Log
  /** Where the keys of upstreams stand, if not in files. */
  environment?: Readonly<Record<string, string | undefined>>
}

/** Builds everything a process is made of, from its configuration. The only place that does. */
export function assemble(config: Config, edges: Edges = {}) {
  const { now = systemClock, log = createLog(config.LOG_LEVEL), environment = {} } = edges
  const metrics = createMetrics()
  const db = connect(config, log, config.DATABASE_POOL_SIZE)
  // Requests that fill the pool must not keep a revocation from arriving; one polls, one applies.
  const changesDb = connect(config, log, 2)
  const redis = openRedis(config, log)
  const egress = createEgress({ privateTargets: config.EGRESS_PRIVATE_TARGETS })
  const uses = createKeyUses(db, log)
  const outageMs = config.KEY_CACHE_OUTAGE_SECONDS * 1000
  const keys = createLookupCache<FoundKey>({ now, outageMs, dependsOn: keyDependsOn })
  const standings = createLookupCache<Standing>({ now, outageMs, dependsOn: standingDependsOn })
  const fileKeys = deriveKeys(config.MASTER_KEYS, 'file-authentication')
  const files = createTrustedFiles({ directory: config.STATE_DIRECTORY, now, keys: fileKeys })
  const keptKeys = keepKeys({ cache: keys, files, outageMs, log })
  const checkRule = checkRuleForm
  const policies = followPolicies({ db: changesDb, now, log, metrics, files, checkRule })
  const limits = createLimits({
    ...{ redis, namespace: config.REDIS_NAMESPACE, now, log, metrics },
    ...{ processes: () => policies.others() + 1, adminCallLimits: adminLimitsOf(config) },
  })
  const money = assembleMoney({ config, db, now, log, metrics, files })
  const inference = createInference({
    ...money,
    ...{ redis, namespace: config.REDIS_NAMESPACE, now, log, metrics, environment, files },
    ...{ modelsFile: config.MODELS_FILE, limitInferenceCall: limits.limitInferenceCall },
  })
  // Only who answers callers needs policies and limits, and counts as a process that runs them.
  const isApi = config.ROLES.includes('api')
  const serving = isApi ? [policies.subscriber, limits.subscriber] : []
  const subscribers = [...[keys, standings].map(forgetting), subscriberOf(keptKeys), ...serving]
  const follower = followChanges({ db: changesDb, now, log, metrics, subscribers })
  const hint = exchangeHints(redis, config, { log, metrics, wake: follower.wake })
  const hashKey = createKeyHasher(config.MASTER_KEYS)
  const stop = async () => {
    limits.stop()
    for (const part of [money, inference, uses, follower, policies, keptKeys]) await part.stop()
    redis?.close()
    await egress.close()
    await Promise.all([db.destroy(), changesDb.destroy()])
  }
  return {
    ...limits,
    ...{ inference, freeTier: money.freeTier, balances: money.balances },
    ...{ config, now, log, metrics, db, follower, hashKey, policies, checkRule, stop },
    authentication: createAuthentication({
      ...{ config, db, now, log, metrics, hashKey, uses, keys, standings, egress, files },
    }),
    gate: createGate({
      ...{ atOnce: Math.ceil(config.DATABASE_POOL_SIZE / 3), waitingMax: 100, waitMs: 5000 },
    }),
    secretBox: createSecretBox(config.MASTER_KEYS),
    announce: createAnnouncer(now, hint),
    docsUrl: config.DOCS_URL,
    policiesMax: config.POLICIES_MAX,
    stripe: {
      secrets: config.STRIPE_WEBHOOK_SECRETS ?? [],
      mode: config.STRIPE_MODE,
      plans: config.STRIPE_PLANS,
    },
  }
}
export type House = ReturnType<typeof assemble>

type MoneyTools = {
  config: Config
  db: Db
  now: Clock
  log: Log
  metrics: Metrics
  files: TrustedFiles
}

/** What calls are paid with. */
function assembleMoney({ config, db, now, log, metrics, files }: MoneyTools) {
  // Requests that fill the pool must not keep a call from being paid: one holds, one settles, one lets go,
  // twelve are for organizations that wait for their account. The others shall not wait with them for long.
  const creditsDb = connect(config, log, 15, { lockTimeoutMs: 200 })
  const balances = createBalanceCopies({ db, now, log })
  const credits = createCredits({
    ...{ db: creditsDb, files, hasFolder: config.STATE_DIRECTORY !== undefined },
    ...{ now, log, metrics, onBalance: balances.note },
  })
  const freeTier = createFreeTier({
    ...{ db, now, log, keys: deriveKeys(config.MASTER_KEYS, 'free-request-identity') },
    requestsPerDay: config.FREE_REQUESTS_PER_DAY,
    creditsMax: BigInt(config.FREE_REQUEST_CREDITS_MAX),
  })
  return {
    ...{ balances, credits, freeTier, holdGraceMs: config.CREDIT_HOLD_GRACE_SECONDS * 1000 },
    async stop() {
      await credits.stop()
      await balances.stop()
      await creditsDb.destroy()
    },
  }
}

const forgetting = (cache: { forget(objectId: string): void; forgetAll(): void }) => ({
  onChange: ({ objectId }: { objectId: string }) => cache.forget(objectId),
  onGap: cache.forgetAll,
})

/** Whatever is forgotten must not come back from the copy of the keys. */
const subscriberOf = (kept: { onForgotten: () => void; onGap: () => void }) => ({
  onChange: ({ kind }: { kind: string }) => {
    if (!kind.startsWith('policy')) kept.onForgotten()
  },
  onGap: kept.onGap,
})

type Waits = { lockTimeoutMs?: number }

const connect = (config: Config, log: Log, poolSize: number, waits: Waits = {}) =>
  connectDatabase({
    url: config.DATABASE_URL,
    poolSize,
    ...waits,
    onProblem: (error) => log.problem('a database connection broke', error),
  })

const adminLimitsOf = (config: Config) =>
  callLimits({
    perCredential: config.ADMIN_REQUESTS_PER_MINUTE,
    perOrganization: config.ADMIN_REQUESTS_PER_MINUTE_ORGANIZATION,
    concurrent: config.ADMIN_CONCURRENT_REQUESTS,
  })

type AuthenticationTools = {
  config: Config
  db: Db
  now: Clock
  log: Log
  metrics: Metrics
  hashKey: HashKey
  uses: KeyUses
  keys: LookupCache<FoundKey>
  standings: LookupCache<Standing>
  egress: Egress
  files: TrustedFiles
}

function createAuthentication(tools: AuthenticationTools): Authentication {
  const { config, now, metrics, keys, egress, log, files } = tools
  const onRefused = () => metrics.guessesRefused.inc()
  const guessesByAddress = createFailedAttempts({ now, what: 'address', guessesMax: 10, onRefused })
  const guessesByHint = createFailedAttempts({ now, what: 'key', guessesMax: 20, onRefused })
  const refused = { now, what: 'address', guessesMax: 100, onRefused }
  return {
    refusedByAddress: createFailedAttempts({ ...refused, guess: 'refused tokens' }),
    byKey: createKeyAuthentication({ ...tools, guessesByAddress, guessesByHint, cache: keys }),
    byJwt: createJwtAuthentication({
      ...tools,
      issuers: config.JWT_ISSUERS,
      keysOf: ({ jwks_url }) => keysOfIssuer(jwks_url, { egress, now, log, files }),
    }),
  }
}

function openRedis(config: Config, log: Log): Redis | undefined {
  const { REDIS_URL, REDIS_CLUSTER, REDIS_DEADLINE_MS } = config
  if (!REDIS_URL) return undefined
  let isAway = false
  return connectRedis({
    url: REDIS_URL,
    isCluster: REDIS_CLUSTER,
    deadlineMs: REDIS_DEADLINE_MS,
    // Reconnection attempts repeat the same problem many times a minute: say it once per outage.
    onProblem: (error) => {
      if (!isAway) log.problem('Redis is away; changes arrive by polling', error)
      isAway = true
    },
    onReady: () => {
      if (isAway) log.event('redis_is_back')
      isAway = false
    },
  })
}

type HintTools = { log: Log; metrics: Metrics; wake: () => void }

/** After a change: look at once ourselves, and ask the others to. Redis may be away; polls cover it. */
function exchangeHints(
  redis: Redis | undefined,
  config: Config,
  { log, metrics, wake }: HintTools,
): () => void {
  if (!redis) return wake
  const channel = `${config.REDIS_NAMESPACE}:changes`
  const ourselves = randomUUID()
  const onHint = (sender: string) => {
    if (sender !== ourselves) wake()
  }
  redis.subscribe(channel, onHint).catch((error: unknown) => log.problem('subscribing', error))
  return () => {
    wake()
    redis.publish(channel, ourselves).catch(() => metrics.hintsLost.inc())
  }
}
