import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { Redis } from '#platform/redis.ts'

import { keyField, projectField } from './counters/counter-names.ts'
import type { Counters } from './counters/counters.ts'
import { createMemoryCounters } from './counters/memory-counters.ts'
import { createRedisCounters } from './counters/redis-counters.ts'
import { createLimitsOf } from './effective-limits.ts'
import { followLimitsFile } from './follow-limits-file.ts'
import { createCallLimit, creditReadLimits } from './limit-calls.ts'
import { createInferenceLimit } from './limit-inference-calls.ts'
import { type Counted, createMinuteLimit } from './limit-per-minute.ts'
import { createQuestionLimit } from './limit-questions.ts'
import { createLimiter } from './limiter.ts'
import type { Limits } from './limits.ts'
import { createCountersWithFallback } from './outage/counters-with-fallback.ts'
import { createQuotaLoader } from './quotas/load-quotas.ts'
import { createRecentRefusals } from './recent-refusals.ts'

type Options = {
  /** What quotas are loaded from. */
  db: Db
  /** Without Redis the process counts in its own memory, so it must be the only one. */
  redis: Redis | undefined
  namespace: string
  now: Clock
  steadyNow: Clock
  log: Log
  metrics: Metrics
  processes: () => number
  adminCallLimits: Limits
  /** How often an organization may save its gateway configuration. */
  savesPerMinute: number
  /** The operator's table of limits; without one the built-in table holds. */
  limitsFile: string | undefined
}

type CallCounters = Counters & {
  /** The clock that the counters go by. */
  now: Clock
  forget(organizationId: string, field: string): Promise<void>
  isExact(): boolean
  stop(): void
}

/** Calls of the judge by which administrators try rules. */
const judgeTrials = { kind: 'trial', what: 'calls of the judge in trials', perMinute: 60 }
/**
 * Each save stays in the audit log, is sent to every sink and makes every process compile the configuration, so saves have a lower
 * limit than other calls.
 */
const saves = { kind: 'gateway_save', what: 'saves of the gateway configuration' }

/** The counters of each kind of call, and the limits that use them. */
export function createLimits(options: Options) {
  const { db, redis, namespace, adminCallLimits, savesPerMinute, limitsFile, ...deps } = options
  const table = followLimitsFile({ file: limitsFile, ...deps })
  const limitsOf = createLimitsOf(table.current)
  const createCounters = (kind: string, prefix: string): CallCounters => {
    if (!redis) return createSingleProcessCounters(deps.steadyNow, deps.now)
    const redisCounters = createRedisCounters({ redis, prefix: `${namespace}:${prefix}` })
    return createCountersWithFallback({ ...deps, now: deps.steadyNow, redis: redisCounters, kind })
  }
  const inference = createCounters('inference', 'rl')
  const administration = createCounters('administration', 'rla')
  const creditReads = createCounters('credit_read', 'rlc')
  const trials = createCounters('trial', 'rlt')
  const gatewaySaves = createCounters('gateway_save', 'rlg')
  const questions = createCounters('questions', 'rlq')
  const all = [inference, administration, creditReads, trials, gatewaySaves, questions]
  const limiterOf = (counters: CallCounters) => createLimiter({ counters })
  const limitCalls = (
    kind: 'administration' | 'credit_read',
    limits: Limits,
    counters: CallCounters,
  ) => createCallLimit({ ...deps, kind, limits, limiter: limiterOf(counters) })
  const limitPerMinute = (counters: CallCounters, counted: Counted) =>
    createMinuteLimit({ ...deps, limiter: limiterOf(counters) }, counted)
  const recentRefusals = createRecentRefusals({ now: deps.steadyNow })
  return {
    adminCallLimits,
    table: table.current,
    limitsOf,
    inferenceCounters: inference,
    adminCounters: administration,
    areLimitsExact: () => all.every((counters) => counters.isExact()),
    recentRefusals,
    limitInferenceCall: createInferenceLimit({
      ...deps,
      limitsOf,
      recentRefusals,
      countersNow: inference.now,
      limiter: createLimiter({ counters: inference, loadQuotas: createQuotaLoader({ db }) }),
    }),
    limitAdminCall: limitCalls('administration', adminCallLimits, administration),
    limitCreditRead: limitCalls('credit_read', creditReadLimits, creditReads),
    openQuestions: createQuestionLimit({
      ...deps,
      limitsOf,
      table: table.current,
      limiter: limiterOf(questions),
    }),
    limitTrial: limitPerMinute(trials, judgeTrials),
    limitGatewaySave: limitPerMinute(gatewaySaves, { ...saves, perMinute: savesPerMinute }),
    subscriber: createScopeRemoval(all),
    stop() {
      table.stop()
      for (const counters of all) counters.stop()
    },
  }
}

type Change = { organizationId: string; kind: string; objectId: string }

/** Removes the counters of deleted keys and archived projects. */
function createScopeRemoval(all: readonly CallCounters[]) {
  return {
    onChange({ organizationId, kind, objectId }: Change) {
      const toField = kind === 'api_key' ? keyField : kind === 'project' ? projectField : null
      if (!toField) return
      for (const counters of all) {
        // A failure is harmless: unused counters expire after a day.
        counters.forget(organizationId, toField(objectId)).catch(() => undefined)
      }
    },
    onGap: () => undefined,
  }
}

function createSingleProcessCounters(steadyNow: Clock, now: Clock): CallCounters {
  const memory = createMemoryCounters({ now: steadyNow })
  return {
    ...memory,
    now,
    forget: async () => undefined,
    isExact: () => true,
    stop: () => undefined,
  }
}
