import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'

import type { LimitsOf } from './effective-limits.ts'
import { inferenceHeaders } from './inference-headers.ts'
import { keyScopeId } from './key-scope.ts'
import { windowMetrics } from './limit-metrics.ts'
import type { Limiter, Slot } from './limiter.ts'
import { leaseMs, type Limits, type Refusal, scopes, type Verdict } from './limits.ts'
import type { QuotaUsage } from './quotas/quota-counts.ts'
import { toQuotaError } from './quotas/quota-refusal.ts'
import { type CallQuotas, type QuotaRules, toCallQuotas } from './quotas/quota.ts'
import type { RecentRefusals } from './recent-refusals.ts'

type Deps = {
  limiter: Limiter
  limitsOf: LimitsOf
  metrics: Metrics
  recentRefusals: RecentRefusals
  /** The clock of the counters, which decides to which window a call belongs. */
  countersNow: Clock
}

type InferenceCall = {
  requestId: string
  principal: Principal
  /** The estimated input and the largest possible output. */
  tokens: number
  /** The call only counts tokens: these use up the limits per minute, but neither those per day nor quotas. */
  isCount?: boolean | undefined
  /** The quotas and budgets that the call counts in, and the most that it can cost. */
  quotas?: { rules: QuotaRules; credits: number } | undefined
}

/** The slot of a call, or why it is refused, and the headers of its answer in both cases. */
export type InferenceAdmission = {
  headers: Record<string, string>
  slot: Slot | null
  refusal: ApiError | null
  /** Whether the call has passed the limits. Then it leaves an event even if it is refused for another reason. */
  isCounted: boolean
  /** The quotas that it is counted in, and their usage after it. */
  quotas: { call: CallQuotas; usage: readonly QuotaUsage[] } | null
}

/**
 * Admits every inference call, in its three scopes at once, before its body is acted on. The pipeline settles
 * the slot after the last byte, or when the call ends without one.
 */
export function createInferenceLimit(deps: Deps) {
  const { limiter, limitsOf, metrics, recentRefusals, countersNow } = deps
  return async (attempt: InferenceCall): Promise<InferenceAdmission> => {
    const { requestId, principal, tokens, isCount = false } = attempt
    const limits = limitsOf(principal)
    const tooLarge = refuseTooLarge(attempt, limits)
    const call = {
      organizationId: principal.organizationId,
      projectId: principal.projectId ?? '',
      keyId: keyScopeId(principal),
      // A call that can never fit counts as a request but with no tokens, because waiting would not help it.
      tokens: tooLarge ? 0 : tokens,
      countsInMinuteOnly: isCount,
      leaseId: requestId,
      leaseMs,
    }
    const quotas = quotasOf(attempt, isCount ? 0 : call.tokens, countersNow)
    const { verdict, slot } = await limiter(quotas ? { ...call, quotas } : call, limits)
    const headers = inferenceHeaders(verdict, limits)
    if (verdict.quotas?.refusal) {
      const refusal = refuseByQuota(verdict, attempt, metrics)
      return { headers, slot: null, refusal, isCounted: true, quotas: null }
    }
    if (!verdict.refusal) {
      const counted = quotas && { call: quotas, usage: verdict.quotas?.usage ?? [] }
      return { headers, slot, refusal: tooLarge, isCounted: true, quotas: counted ?? null }
    }
    const { scope, metric, waitMs } = verdict.refusal
    metrics.limitsRefused.inc({ kind: 'inference', scope, metric })
    const refusal = toError(verdict.refusal, limits)
    // Only a refusal for too many requests also applies to the next call, which may need fewer tokens or find a free slot.
    if (metric.startsWith('requests_')) {
      recentRefusals.record(principal, { headers, refusal, waitMs })
    }
    return { headers, slot: null, refusal, isCounted: false, quotas: null }
  }
}

const quotasOf = (
  { requestId, quotas }: InferenceCall,
  tokens: number,
  now: Clock,
): CallQuotas | undefined =>
  quotas &&
  toCallQuotas({
    rules: quotas.rules,
    leaseId: requestId,
    tokens,
    credits: quotas.credits,
    nowMs: now().getTime(),
  })

function refuseByQuota(
  { quotas, nowMs }: Verdict,
  attempt: InferenceCall,
  metrics: Metrics,
): ApiError {
  const refused = quotas?.refusal
  if (!refused) throw new Error('no quota refuses the call')
  const { counter, unit } = refused
  metrics.limitsRefused.inc({ kind: 'quota', scope: counter.scope, metric: unit })
  return toQuotaError(refused, attempt.quotas?.rules.policy ?? null, nowMs)
}

const tokenMetrics = windowMetrics.filter(({ unit }) => unit === 'tokens')

function refuseTooLarge({ tokens, isCount }: InferenceCall, limits: Limits): ApiError | null {
  let smallest = Infinity
  for (const scope of scopes) {
    for (const { metric, window } of tokenMetrics) {
      if (isCount && window === 'day') continue
      smallest = Math.min(smallest, limits[scope][metric])
    }
  }
  if (tokens <= smallest) return null
  if (isCount) {
    return new ApiError(
      'invalid_request',
      `The request has about ${tokens} tokens, more than the ${smallest} a minute that your limits allow; count it in parts.`,
    )
  }
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
    { headers: { 'retry-after': String(waitSeconds) }, refusedBy: { scope, metric } },
  )
}
