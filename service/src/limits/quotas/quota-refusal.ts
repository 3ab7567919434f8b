import { ApiError } from '#platform/api-error.ts'

import type { QuotaVerdict } from './quota-counts.ts'
import type { QuotaRules, QuotaScope } from './quota.ts'

type Refusal = NonNullable<QuotaVerdict['refusal']>

/** A window may last a month; clients that wait for so long are of no use. */
const retryAfterMax = 3600

/** The answer to a call beyond a quota (429) or a budget (402). */
export function toQuotaError(
  { counter, unit }: Refusal,
  policy: QuotaRules['policy'],
  nowMs: number,
): ApiError {
  const { scope, window, limits, period } = counter
  if (unit === 'credits') {
    return new ApiError(
      'budget_exceeded',
      `The monthly budget of the ${scope === 'key' ? 'API key' : scope} of ${limits.credits} credits does not cover what this call may cost. It is renewed on ${period.endDay}.`,
    )
  }
  const waitSeconds = Math.max(1, Math.ceil((period.endsAtMs - nowMs) / 1000))
  return new ApiError(
    'rate_limit_exceeded',
    `The ${window} quota of the ${scope} is reached: ${limits[unit]} ${unit}. It is renewed on ${period.endDay}.`,
    {
      headers: { 'retry-after': String(Math.min(waitSeconds, retryAfterMax)) },
      ...(policy && {
        policy: { policy_id: policy.id, version: policy.version, reason_code: reasonOf(scope) },
      }),
    },
  )
}

/** Only users and projects have quotas; the others have budgets. */
const reasonOf = (scope: QuotaScope) =>
  scope === 'user' ? 'USER_QUOTA_EXCEEDED' : 'PROJECT_QUOTA_EXCEEDED'
