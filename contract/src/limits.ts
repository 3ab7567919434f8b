import { z } from 'zod'

import { adminEndpoint } from './endpoint.ts'

/** From the lowest to the highest. */
export const Tier = z.enum(['free', 'tier_1', 'tier_2', 'tier_3', 'tier_4', 'tier_5'])
export type Tier = z.infer<typeof Tier>

export const Plan = z.enum(['free', 'developer', 'growth', 'scale'])
export type Plan = z.infer<typeof Plan>

const requests = z.int().min(1).max(1_000_000_000)
const tokens = z.int().min(1).max(100_000_000_000_000)

/** What a limit can be set to. Nobody is blocked with a limit of 0: keys are deleted, organizations suspended. */
export const limitNumbers = {
  requests_per_minute: requests,
  requests_per_day: requests,
  tokens_per_minute: tokens,
  concurrent_requests: z.int().min(1).max(100_000),
}
/** Only organizations have a limit of tokens per day. */
export const organizationLimitNumbers = { ...limitNumbers, tokens_per_day: tokens }
export type LimitName = keyof typeof organizationLimitNumbers

/** Numbers of one scope that hold instead of the tier's. */
export type LimitValues = Readonly<Partial<Record<LimitName, number>>>
export type LimitScope = 'organization' | 'project' | 'key'

/** The numbers that hold instead of the tier's for a caller's organization, project and key. */
export type LimitOverrides = Readonly<Partial<Record<LimitScope, LimitValues>>>

/** The limits that were set for one project or key, as its object shows them. */
export const OwnLimits = z
  .object({
    requests_per_minute: limitNumbers.requests_per_minute.nullable(),
    requests_per_day: limitNumbers.requests_per_day.nullable(),
    tokens_per_minute: limitNumbers.tokens_per_minute.nullable(),
    concurrent_requests: limitNumbers.concurrent_requests.nullable(),
  })
  .nullable()
  .describe("Limits that were set here. null, or a null member: the tier's number holds.")
export type OwnLimits = z.infer<typeof OwnLimits>

/** A change of `OwnLimits`: an absent member keeps its value. */
export const LimitsEdit = z
  .strictObject({
    requests_per_minute: limitNumbers.requests_per_minute.nullish(),
    requests_per_day: limitNumbers.requests_per_day.nullish(),
    tokens_per_minute: limitNumbers.tokens_per_minute.nullish(),
    concurrent_requests: limitNumbers.concurrent_requests.nullish(),
  })
  .nullable()
  .describe(
    "null returns to the tier's numbers, a null member to the tier's number. At most the organization's.",
  )
export type LimitsEdit = z.infer<typeof LimitsEdit>

const LimitUsage = z.object({
  limit: z.int().min(0).nullable().describe('null: there is no such limit in this scope.'),
  used: z.int().min(0),
})

const metricsWith = <Usage extends z.ZodType>(usage: Usage) => ({
  requests_per_minute: usage,
  requests_per_day: usage,
  tokens_per_minute: usage,
  tokens_per_day: usage,
  concurrent_requests: usage,
})

const ScopeLimits = z.object(metricsWith(LimitUsage)).meta({ id: 'ScopeLimits' })
export type ScopeLimits = z.infer<typeof ScopeLimits>

const LimitSource = z.enum(['tier', 'file', 'override'])
export type LimitSource = z.infer<typeof LimitSource>

/** The limits of one scope of inference calls, how much of each is used, and where its number comes from. */
const metrics = metricsWith(
  LimitUsage.extend({
    source: LimitSource.describe(
      "tier: the built-in table. file: the operator's table. override: set for this organization, project or key.",
    ),
  }),
)
const InferenceLimits = z.object(metrics).meta({ id: 'InferenceLimits' })
export type InferenceLimits = z.infer<typeof InferenceLimits>

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
    organization: InferenceLimits,
    each_project: InferenceLimits.describe('The limits of a project without calls and own limits.'),
    each_key: InferenceLimits.describe('The limits of a key without calls and own limits.'),
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
  isConditional: true,
  errors: [],
})
