import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Metrics } from '#platform/metrics.ts'

import { inferenceHeaders } from './inference-headers.ts'
import type { LatelyRefused } from './lately-refused.ts'
import type { Limiter, Slot } from './limiter.ts'
import { leaseMs, type Limits, type Metric, type Refusal, scopes } from './limits.ts'
import { keyScopeOf } from './subject.ts'
import { limitsByTier, tierOf } from './tiers.ts'

type Options = { limiter: Limiter; metrics: Metrics; latelyRefused: LatelyRefused }

type Call = {
  requestId: string
  principal: Principal
  /** The estimated input and the largest output it may produce; 0 for calls that use none. */
  tokens: number
}

/** What became of a call: its slot, or why it is refused; and what its answer says either way. */
export type InferenceAdmission = {
  headers: Record<string, string>
  slot: Slot | null
  refusal: ApiError | null
}

/**
 * The way in for every inference call: counted in three scopes at once before its body is acted on. The
 * caller of this settles the slot after the last byte, or when the other side hangs up.
 */
export function createInferenceLimit({ limiter, metrics, latelyRefused }: Options) {
  return async ({ requestId, principal, tokens }: Call): Promise<InferenceAdmission> => {
    const limits = limitsByTier[tierOf(principal)]
    const tooLarge = neverFits(tokens, limits)
    const attempt = {
      organizationId: principal.organizationId,
      projectId: principal.projectId ?? '',
      keyId: keyScopeOf(principal),
      // What can never fit is an attempt all the same, but waiting would not help it.
      tokens: tooLarge ? 0 : tokens,
      ...{ leaseId: requestId, leaseMs },
    }
    const { verdict, slot } = await limiter(attempt, limits)
    const headers = inferenceHeaders(verdict, limits)
    if (!verdict.refusal) return { headers, slot, refusal: tooLarge }
    const { scope, metric, waitMs } = verdict.refusal
    metrics.limitsRefused.inc({ kind: 'inference', scope, metric })
    const refusal = toError(verdict.refusal, limits)
    // Tokens may suffice for another call, and a slot may be free at any moment; requests are requests.
    if (metric.startsWith('requests_')) latelyRefused.note(principal, { headers, refusal, waitMs })
    return { headers, slot: null, refusal }
  }
}

function neverFits(tokens: number, limits: Limits): ApiError | null {
  const smallest = Math.min(
    ...scopes.map((scope) => limits[scope].tokens_per_minute),
    limits.organization.tokens_per_day,
  )
  if (tokens <= smallest) return null
  return new ApiError(
    'invalid_request',
    `The request may use ${tokens} tokens, more than the ${smallest} that your tier allows at once; ask for less output.`,
  )
}

const wording: Record<Metric, string> = {
  requests_per_minute: 'requests per minute',
  requests_per_day: 'requests per day',
  tokens_per_minute: 'tokens per minute',
  tokens_per_day: 'tokens per day',
  concurrent_requests: 'concurrent requests',
}

function toError({ scope, metric, waitMs }: Refusal, limits: Limits): ApiError {
  const where = scope === 'key' ? 'API key' : scope
  const limit = limits[scope][metric]
  const waitSeconds = Math.max(1, Math.ceil(waitMs / 1000))
  return new ApiError(
    'rate_limit_exceeded',
    `Rate limit reached for ${wording[metric]} on ${where}: limit ${limit}. Retry after ${waitSeconds}s.`,
    { headers: { 'retry-after': String(waitSeconds) } },
  )
}
