import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Metrics } from '#platform/metrics.ts'

import type { LimitsOf } from './effective-limits.ts'
import { inferenceHeaders } from './inference-headers.ts'
import { keyScopeId } from './key-scope.ts'
import { windowMetrics } from './limit-metrics.ts'
import type { Limiter, Slot } from './limiter.ts'
import { leaseMs, type Limits, type Refusal, scopes } from './limits.ts'
import type { RecentRefusals } from './recent-refusals.ts'

type Deps = {
  limiter: Limiter
  limitsOf: LimitsOf
  metrics: Metrics
  recentRefusals: RecentRefusals
}

type InferenceCall = {
  requestId: string
  principal: Principal
  /** The estimated input and the largest possible output; 0 for endpoints that use no tokens. */
  tokens: number
}

/** The slot of a call, or why it is refused, and the headers of its answer in both cases. */
export type InferenceAdmission = {
  headers: Record<string, string>
  slot: Slot | null
  refusal: ApiError | null
}

/**
 * Admits every inference call, in its three scopes at once, before its body is acted on. The pipeline settles
 * the slot after the last byte, or when the call ends without one.
 */
export function createInferenceLimit({ limiter, limitsOf, metrics, recentRefusals }: Deps) {
  return async ({ requestId, principal, tokens }: InferenceCall): Promise<InferenceAdmission> => {
    const limits = limitsOf(principal)
    const tooLarge = refuseTooLarge(tokens, limits)
    const call = {
      organizationId: principal.organizationId,
      projectId: principal.projectId ?? '',
      keyId: keyScopeId(principal),
      // A call that can never fit counts as a request, but not with tokens: no wait would help it.
      tokens: tooLarge ? 0 : tokens,
      leaseId: requestId,
      leaseMs,
    }
    const { verdict, slot } = await limiter(call, limits)
    const headers = inferenceHeaders(verdict, limits)
    if (!verdict.refusal) return { headers, slot, refusal: tooLarge }
    const { scope, metric, waitMs } = verdict.refusal
    metrics.limitsRefused.inc({ kind: 'inference', scope, metric })
    const refusal = toError(verdict.refusal, limits)
    // Only a refusal for requests holds for the next call: that may need fewer tokens, or find a free slot.
    if (metric.startsWith('requests_')) {
      recentRefusals.record(principal, { headers, refusal, waitMs })
    }
    return { headers, slot: null, refusal }
  }
}

const tokenMetrics = windowMetrics.filter(({ unit }) => unit === 'tokens')

function refuseTooLarge(tokens: number, limits: Limits): ApiError | null {
  let smallest = Infinity
  for (const scope of scopes) {
    for (const { metric } of tokenMetrics) smallest = Math.min(smallest, limits[scope][metric])
  }
  if (tokens <= smallest) return null
  return new ApiError(
    'invalid_request',
    `The request may use ${tokens} tokens, more than the ${smallest} that your limits allow at once; send less input or ask for less output.`,
  )
}

function toError({ scope, metric, waitMs }: Refusal, limits: Limits): ApiError {
  const metricName = metric.replaceAll('_', ' ')
  const scopeName = scope === 'key' ? 'API key' : scope
  const waitSeconds = Math.max(1, Math.ceil(waitMs / 1000))
  return new ApiError(
    'rate_limit_exceeded',
    `Rate limit reached for ${metricName} on ${scopeName}: limit ${limits[scope][metric]}. Retry after ${waitSeconds}s.`,
    { headers: { 'retry-after': String(waitSeconds) } },
  )
}
