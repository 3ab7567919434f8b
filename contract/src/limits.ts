import { z } from 'zod'

import { adminEndpoint } from './endpoint.ts'

/** From the lowest to the highest. */
export const Tier = z.enum(['free', 'tier_1', 'tier_2', 'tier_3', 'tier_4', 'tier_5'])
export type Tier = z.infer<typeof Tier>

export const Plan = z.enum(['free', 'developer', 'growth', 'scale'])
export type Plan = z.infer<typeof Plan>

const LimitUsage = z.object({
  limit: z.int().min(0).nullable().describe('null: there is no such limit in this scope.'),
  used: z.int().min(0),
})

/** The limits of one scope, and how much of each is used. */
const metrics = {
  requests_per_minute: LimitUsage,
  requests_per_day: LimitUsage,
  tokens_per_minute: LimitUsage,
  tokens_per_day: LimitUsage,
  concurrent_requests: LimitUsage,
}
export const ScopeLimits = z.object(metrics).meta({ id: 'ScopeLimits' })
export type ScopeLimits = z.infer<typeof ScopeLimits>

const OrganizationLimits = z
  .object({
    object: z.literal('organization.limits'),
    tier: Tier.describe(
      'The higher of the tier that the plan gives and the tier that payments have earned.',
    ),
    plan: Plan,
    lifetime_paid_usd: z.number().min(0),
    is_exact: z
      .boolean()
      .describe('false: Redis is away, and this process enforces its share of the limits.'),
    organization: ScopeLimits,
    each_project: ScopeLimits.describe('The limits of a project without calls.'),
    each_key: ScopeLimits.describe('The limits of a key without calls.'),
    projects: z
      .array(z.object({ project_id: z.string(), ...metrics }))
      .max(100)
      .describe('Projects with calls in the last day, those closest to a limit first.'),
    keys: z
      .array(z.object({ key_id: z.string(), ...metrics }))
      .max(100)
      .describe('Keys with calls in the last day, those closest to a limit first.'),
    administration: ScopeLimits.describe('Calls to the administration endpoints.'),
  })
  .meta({ id: 'OrganizationLimits' })
export type OrganizationLimits = z.infer<typeof OrganizationLimits>

export const readLimits = adminEndpoint({
  id: 'readLimits',
  summary: "Read the organization's tier, limits and usage",
  method: 'GET',
  path: '/v1/organization/limits',
  permission: 'projects.read',
  response: OrganizationLimits,
  errors: [],
})
