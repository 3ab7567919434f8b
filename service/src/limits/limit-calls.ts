import type { FastifyReply, FastifyRequest } from 'fastify'

import type { Principal } from '#http/principal.ts'
import { type ApiError, rateLimitExceeded } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'

import type { Limiter } from './limiter.ts'
import { leaseMs, type Limits, type Refusal, unlimited } from './limits.ts'
import { keyScopeOf } from './subject.ts'

type Numbers = { perCredential: number; perOrganization: number; concurrent?: number }

/** Calls that are not inference have limits of their own, by credential and by organization. */
export const callLimits = ({ perCredential, perOrganization, concurrent }: Numbers): Limits => ({
  organization: {
    ...unlimited,
    requests_per_minute: perOrganization,
    concurrent_requests: concurrent ?? Infinity,
  },
  project: unlimited,
  key: { ...unlimited, requests_per_minute: perCredential },
})

/** Reading the balance (contract 8.3). */
export const creditReadLimits = callLimits({ perCredential: 60, perOrganization: 300 })

type Options = {
  kind: 'administration' | 'credit_read'
  limiter: Limiter
  limits: Limits
  now: Clock
  metrics: Metrics
}

/**
 * Counts a call, also one that will be refused for another reason; returns why it may not go on, if a
 * limit is reached. Where slots are limited, it is freed when the answer has gone, or the caller.
 */
export function createCallLimit({ kind, limiter, limits, now, metrics }: Options) {
  const hasSlots = limits.organization.concurrent_requests !== Infinity
  return async (
    request: FastifyRequest,
    reply: FastifyReply,
    principal: Principal,
  ): Promise<ApiError | null> => {
    const attempt = {
      ...{ organizationId: principal.organizationId, projectId: '', keyId: keyScopeOf(principal) },
      ...{ tokens: 0, leaseId: request.id, leaseMs: hasSlots ? leaseMs : 0 },
    }
    const { verdict, slot } = await limiter(attempt, limits)
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
    ...{ where, scope: where, metric: isSlot ? 'concurrent_requests' : 'requests' },
    ...{ limit: limits[scope][metric], waitMs, now },
  })
}
