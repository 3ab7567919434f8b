import type { FastifyReply, FastifyRequest } from 'fastify'

import type { Principal } from '#http/principal.ts'
import { type ApiError, rateLimitExceeded } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'

import type { Limiter } from './limiter.ts'
import { leaseMs, type Limits, type Refusal, unlimited } from './limits.ts'
import { keyScopeOf } from './subject.ts'

type Numbers = { perCredential: number; perOrganization: number; concurrent: number }

/** Administration calls have limits of their own, by credential and by organization (G8.12). */
export const adminLimits = ({ perCredential, perOrganization, concurrent }: Numbers): Limits => ({
  organization: {
    ...unlimited,
    requests_per_minute: perOrganization,
    concurrent_requests: concurrent,
  },
  project: unlimited,
  key: { ...unlimited, requests_per_minute: perCredential },
})

type Options = { limiter: Limiter; limits: Limits; now: Clock; metrics: Metrics }

/**
 * Counts an administration call, also one that will be refused for another reason; returns why it may
 * not go on, if so. Its slot is freed when the answer has gone, or the caller.
 */
export function createAdminCallLimit({ limiter, limits, now, metrics }: Options) {
  return async (
    request: FastifyRequest,
    reply: FastifyReply,
    principal: Principal,
  ): Promise<ApiError | null> => {
    const attempt = {
      ...{ organizationId: principal.organizationId, projectId: '', keyId: keyScopeOf(principal) },
      ...{ tokens: 0, leaseId: request.id, leaseMs },
    }
    const { verdict, slot } = await limiter(attempt, limits)
    if (slot) reply.raw.once('close', () => void slot.settle(0))
    if (!verdict.refusal) return null
    const { scope, metric } = verdict.refusal
    metrics.limitsRefused.inc({ kind: 'administration', scope, metric })
    return toError(verdict.refusal, limits, now())
  }
}
export type AdminCallLimit = ReturnType<typeof createAdminCallLimit>

function toError({ scope, metric, waitMs }: Refusal, limits: Limits, now: Date): ApiError {
  const where = scope === 'key' ? 'credential' : 'organization'
  const isSlot = metric === 'concurrent_requests'
  return rateLimitExceeded({
    what: isSlot ? 'concurrent requests' : 'requests',
    ...{ where, scope: where, metric: isSlot ? 'concurrent_requests' : 'requests' },
    ...{ limit: limits[scope][metric], waitMs, now },
  })
}
