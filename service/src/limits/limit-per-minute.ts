import { randomUUID } from 'node:crypto'

import { rateLimitExceeded } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'

import { callLimits } from './limit-calls.ts'
import type { Limiter } from './limiter.ts'

type Deps = { limiter: Limiter; now: Clock; metrics: Metrics }

export type Counted = {
  /** The name in metrics. */
  kind: string
  /** The name in the error, in the plural. */
  what: string
  perMinute: number
}

/** Counts something that an organization does; throws 429 if it did so too often in the last minute. */
export function createMinuteLimit({ limiter, now, metrics }: Deps, counted: Counted) {
  const { kind, what, perMinute } = counted
  const limits = callLimits({ perCredential: Infinity, perOrganization: perMinute })
  return async (organizationId: string): Promise<void> => {
    const scopes = { organizationId, projectId: '', keyId: '' }
    const call = { ...scopes, tokens: 0, leaseId: randomUUID(), leaseMs: 0 }
    const { verdict } = await limiter(call, limits)
    if (!verdict.refusal) return
    const { scope, metric, waitMs } = verdict.refusal
    metrics.limitsRefused.inc({ kind, scope, metric })
    throw rateLimitExceeded({
      what,
      where: 'organization',
      scope: 'organization',
      limit: perMinute,
      waitMs,
      now: now(),
    })
  }
}
