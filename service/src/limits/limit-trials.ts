import { randomUUID } from 'node:crypto'

import { rateLimitExceeded } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'

import { callLimits } from './limit-calls.ts'
import type { Limiter } from './limiter.ts'

const judgeCallsPerMinute = 60
const limits = callLimits({ perCredential: Infinity, perOrganization: judgeCallsPerMinute })

type Deps = { limiter: Limiter; now: Clock; metrics: Metrics }

/** Counts a call of the judge that somebody makes to try a rule; throws if the organization has made too many. */
export function createTrialLimit({ limiter, now, metrics }: Deps) {
  return async (organizationId: string): Promise<void> => {
    const scopes = { organizationId, projectId: '', keyId: '' }
    const call = { ...scopes, tokens: 0, leaseId: randomUUID(), leaseMs: 0 }
    const { verdict } = await limiter(call, limits)
    if (!verdict.refusal) return
    const { scope, metric, waitMs } = verdict.refusal
    metrics.limitsRefused.inc({ kind: 'trial', scope, metric })
    throw rateLimitExceeded({
      what: 'calls of the judge in trials',
      where: 'organization',
      scope: 'organization',
      limit: judgeCallsPerMinute,
      waitMs,
      now: now(),
    })
  }
}
