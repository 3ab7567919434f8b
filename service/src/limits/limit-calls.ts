import type { FastifyReply, FastifyRequest } from 'fastify'

import type { Principal } from '#http/principal.ts'
import { type ApiError, rateLimitExceeded } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'

import { keyScopeId } from './key-scope.ts'
import type { Limiter } from './limiter.ts'
import { leaseMs, type Limits, type Refusal, unlimited } from './limits.ts'

type RequestLimits = { perCredential: number; perOrganization: number; concurrent?: number }

/** The limits of calls that are not inference: by credential and by organization. */
export const callLimits = ({
  perCredential,
  perOrganization,
  concurrent,
}: RequestLimits): Limits => ({
  organization: {
    ...unlimited,
    requests_per_minute: perOrganization,
    concurrent_requests: concurrent ?? Infinity,
  },
  project: unlimited,
  key: { ...unlimited, requests_per_minute: perCredential },
})

export const creditReadLimits = callLimits({ perCredential: 60, perOrganization: 300 })

type Deps = {
  kind: 'administration' | 'credit_read'
  limiter: Limiter
  limits: Limits
  now: Clock
  metrics: Metrics
}

/**
 * Counts a call, even if it will be refused for another reason, and returns an error if a limit is reached.
 * Where slots are limited, the call's slot is freed when its connection or its answer ends.
 */
export function createCallLimit({ kind, limiter, limits, now, metrics }: Deps) {
  const hasSlots = limits.organization.concurrent_requests !== Infinity
  return async (
    request: FastifyRequest,
    reply: FastifyReply,
    principal: Principal,
  ): Promise<ApiError | null> => {
    const call = {
      organizationId: principal.organizationId,
      projectId: '',
      keyId: keyScopeId(principal),
      tokens: 0,
      leaseId: request.id,
      leaseMs: hasSlots ? leaseMs : 0,
    }
    const { verdict, slot } = await limiter(call, limits)
    if (slot) reply.raw.once('close', () => void slot.settle(0))
    if (!verdict.refusal) return null
    const { scope, metric } = verdict.refusal
    metrics.limitsRefused.inc({ kind, scope, metric })
    return toError(verdict.refusal, limits, now())
  }
}

function toError({ scope, metric, waitMs }: Refusal, limits: Limits, now: Date): ApiError {
  const where = scope === 'key' ? 'credential' : 'organization'
  const isSlot = metric === 'concurrent_requests'
  return rateLimitExceeded({
    what: isSlot ? 'concurrent requests' : 'requests',
    where,
    scope: where,
    metric: isSlot ? 'concurrent_requests' : 'requests',
    limit: limits[scope][metric],
    waitMs,
    now,
  })
}
