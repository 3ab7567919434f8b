import { expect, test } from 'vitest'

import { limitsByTier, tierOf } from './tiers.ts'

const usd = (amount: number) => Math.round(amount * 1_000_000)

test.each([
  ['free', 0, 'free'],
  ['free', 19.999999, 'free'],
  ['free', 20, 'tier_1'],
  ['free', 49.99, 'tier_1'],
  ['free', 50, 'tier_2'],
  ['free', 199.999999, 'tier_2'],
  ['free', 200, 'tier_3'],
  ['free', 1000, 'tier_4'],
  ['free', 4999.999999, 'tier_4'],
  ['free', 5000, 'tier_5'],
  ['developer', 0, 'tier_1'],
  ['growth', 0, 'tier_2'],
  ['scale', 0, 'tier_3'],
  ['developer', 50, 'tier_2'],
  ['scale', 20, 'tier_3'],
  ['growth', 5000, 'tier_5'],
] as const)('plan %s and %d USD paid: %s', (plan, paid, tier) => {
  expect(tierOf({ plan, paidMicroUsd: usd(paid) })).toBe(tier)
})

test('every number is whole, and the free tier has its numbers', () => {
  for (const limits of Object.values(limitsByTier)) {
    for (const amounts of Object.values(limits)) {
      for (const amount of Object.values(amounts)) {
        expect(amount === Infinity || Number.isInteger(amount)).toBe(true)
      }
    }
  }
  const { key, project, organization } = limitsByTier.free
  expect([key.requests_per_minute, key.tokens_per_minute, key.requests_per_day]).toEqual([
    60, 1_000_000, 10_000,
  ])
  expect([
    project.requests_per_minute,
    project.tokens_per_minute,
    project.requests_per_day,
  ]).toEqual([90, 1_500_000, 15_000])
  expect([organization.requests_per_minute, organization.tokens_per_day]).toEqual([
    120, 1_000_000_000,
  ])
})
