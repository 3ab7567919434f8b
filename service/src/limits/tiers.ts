import { type Plan, Tier } from '@gatehouse/contract/limits'

import type { Amounts, Limits } from './limits.ts'

const tiers = Tier.options

const tierOfPlan = {
  free: 'free',
  developer: 'tier_1',
  growth: 'tier_2',
  scale: 'tier_3',
} as const satisfies Record<Plan, Tier>

/** The lifetime payments, in USD, that earn a tier. Thresholds are inclusive. */
const earnedAtUsd: Record<Tier, number> = {
  free: 0,
  tier_1: 20,
  tier_2: 50,
  tier_3: 200,
  tier_4: 1000,
  tier_5: 5000,
}

/** The higher of the tier that the plan gives and the tier that payments have earned. */
export function tierOf({ plan, paidMicroUsd }: { plan: Plan; paidMicroUsd: number }): Tier {
  const earned = tiers.findLast((tier) => paidMicroUsd >= earnedAtUsd[tier] * 1_000_000) ?? 'free'
  const fromPlan = tierOfPlan[plan]
  return tiers.indexOf(fromPlan) > tiers.indexOf(earned) ? fromPlan : earned
}

const million = 1_000_000
const billion = 1_000_000_000

/** Requests and tokens per minute, and requests per day. */
const perKey: Record<Tier, readonly [requests: number, tokens: number, dailyRequests: number]> = {
  free: [60, million, 10_000],
  tier_1: [120, 2 * million, 15_000],
  tier_2: [300, 4 * million, 25_000],
  tier_3: [500, 6 * million, 50_000],
  tier_4: [700, 8 * million, 75_000],
  tier_5: [900, 10 * million, 100_000],
}

const concurrentRequests: Record<
  Tier,
  readonly [key: number, project: number, organization: number]
> = {
  free: [4, 6, 8],
  tier_1: [8, 10, 12],
  tier_2: [12, 14, 16],
  tier_3: [16, 16, 16],
  tier_4: [32, 32, 32],
  tier_5: [32, 32, 32],
}

/** Only the organization has this limit. */
const tokensPerDay: Record<Tier, number> = {
  free: billion,
  tier_1: 2 * billion,
  tier_2: 5 * billion,
  tier_3: 10 * billion,
  tier_4: 20 * billion,
  tier_5: 50 * billion,
}

/** Projects get 1.5 times the limits of a key, organizations twice; slots have values of their own. */
function buildLimits(tier: Tier): Limits {
  const [requests, tokens, dailyRequests] = perKey[tier]
  const [keySlots, projectSlots, organizationSlots] = concurrentRequests[tier]
  const times = (factor: number, slots: number): Amounts => ({
    requests_per_minute: requests * factor,
    requests_per_day: dailyRequests * factor,
    tokens_per_minute: tokens * factor,
    tokens_per_day: Infinity,
    concurrent_requests: slots,
  })
  return {
    organization: { ...times(2, organizationSlots), tokens_per_day: tokensPerDay[tier] },
    project: times(1.5, projectSlots),
    key: times(1, keySlots),
  }
}

/** Built once: limits are packed for Redis once per object. */
export const limitsByTier = Object.freeze(
  Object.fromEntries(tiers.map((tier) => [tier, Object.freeze(buildLimits(tier))])),
) as Readonly<Record<Tier, Limits>>
