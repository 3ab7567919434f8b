import { z } from 'zod'

import { adminEndpoint } from './endpoint.ts'

/** From the least to the most (contract 8.2). */
export const Tier = z.enum(['free', 'tier_1', 'tier_2', 'tier_3', 'tier_4', 'tier_5'])
export type Tier = z.infer<typeof Tier>

export const Plan = z.enum(['free', 'developer', 'growth', 'scale'])
export type Plan = z.infer<typeof Plan>

const Standing = z.object({
  limit: z.int().min(0).nullable().describe('null: there is no such limit here.'),
  used: z.int().min(0),
})

/** Every limit of one scope, and how much of it is used at this moment. */
const metrics = {
  requests_per_minute: Standing,
  requests_per_day: Standing,
  tokens_per_minute: Standing,
  tokens_per_day: Standing,
  concurrent_requests: Standing,
}
export const ScopeLimits = z.object(metrics).meta({ id: 'ScopeLimits' })
export type ScopeLimits = z.infer<typeof ScopeLimits>

const OrganizationLimits = z
  .object({
    object: z.literal('organization.limits'),
    tier: Tier.describe('The higher of what the plan gives and what was earned by paying.'),
    plan: Plan,
    lifetime_paid_usd: z.number().min(0),
    is_exact: z
      .boolean()
      .describe('false: this process counts by itself at the moment, and enforces its share.'),
    organization: ScopeLimits,
    each_project: ScopeLimits.describe('What a project may use; nothing is used in it yet.'),
    each_key: ScopeLimits.describe('What a key may use; nothing is used by it yet.'),
    projects: z
      .array(z.object({ project_id: z.string(), ...metrics }))
      .max(100)
      .describe('Projects with calls in the last day, those closest to a limit first.'),
    keys: z
      .array(z.object({ key_id: z.string(), ...metrics }))
      .max(100)
      .describe('Keys with calls in the last day, those closest to a limit first.'),
    administration: ScopeLimits.describe('Calls of the administration interface.'),
  })
  .meta({ id: 'OrganizationLimits' })
export type OrganizationLimits = z.infer<typeof OrganizationLimits>

export const readLimits = adminEndpoint({
  id: 'readLimits',
  summary: "Read the organization's tier, its limits and their use: why a 429 came",
  method: 'GET',
  path: '/v1/organization/limits',
  permission: 'projects.read',
  response: OrganizationLimits,
  errors: [],
})
