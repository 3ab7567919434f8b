import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { Redis } from '#platform/redis.ts'

import type { Counters } from './counters.ts'
import { createLatelyRefused } from './lately-refused.ts'
import { createCallLimit, creditReadLimits } from './limit-calls.ts'
import { createInferenceLimit } from './limit-inference-calls.ts'
import { createLimiter } from './limiter.ts'
import type { Limits } from './limits.ts'
import { createMemoryCounters } from './memory-counters.ts'
import { createRedisCounters } from './redis-counters.ts'
import { createSharedCounters } from './shared-counters.ts'

type Options = {
  /** Without one the process counts for itself: it must be the only one. */
  redis: Redis | undefined
  namespace: string
  now: Clock
  log: Log
  metrics: Metrics
  processes: () => number
  adminCallLimits: Limits
}

type Kind = Counters & {
  forget(organizationId: string, field: string): Promise<void>
  isExact(): boolean
  stop(): void
}

/** The counters of each kind of call, and the ways in that use them. */
export function createLimits({ redis, namespace, adminCallLimits, ...tools }: Options) {
  const countersFor = (kind: string, prefix: string): Kind => {
    if (!redis) return alone(tools.now)
    const shared = createRedisCounters({ redis, prefix: `${namespace}:${prefix}` })
    return createSharedCounters({ ...tools, redis: shared, kind })
  }
  const inference = countersFor('inference', 'rl')
  const administration = countersFor('administration', 'rla')
  const creditReads = countersFor('credit_read', 'rlc')
  const latelyRefused = createLatelyRefused(tools)
  const all = [inference, administration, creditReads]
  return {
    adminCallLimits,
    inferenceCounters: inference,
    adminCounters: administration,
    areLimitsExact: () => all.every((counters) => counters.isExact()),
    latelyRefused,
    limitInferenceCall: createInferenceLimit({
      ...{ ...tools, latelyRefused, limiter: createLimiter(inference) },
    }),
    limitAdminCall: createCallLimit({
      ...{ ...tools, kind: 'administration', limits: adminCallLimits },
      limiter: createLimiter(administration),
    }),
    limitCreditRead: createCallLimit({
      ...{ ...tools, kind: 'credit_read', limits: creditReadLimits },
      limiter: createLimiter(creditReads),
    }),
    /** Keys and projects that are gone need no counters any more. */
    subscriber: {
      onChange({
        organizationId,
        kind,
        objectId,
      }: {
        organizationId: string
        kind: string
        objectId: string
      }) {
        const field = kind === 'api_key' ? `k${objectId}` : kind === 'project' ? `p${objectId}` : ''
        if (!field) return
        for (const counters of all) {
          counters.forget(organizationId, field).catch(() => undefined) // it ends by itself in a day
        }
      },
      onGap: () => undefined,
    },
    stop() {
      for (const counters of all) counters.stop()
    },
  }
}

function alone(now: Clock): Kind {
  const memory = createMemoryCounters({ now })
  return { ...memory, forget: async () => undefined, isExact: () => true, stop: () => undefined }
}
