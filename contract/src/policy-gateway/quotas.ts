import { z } from 'zod'

import { adminEndpoint } from '../endpoint.ts'
import { listOf, ListQuery } from '../list.ts'
import { storedText } from '../text.ts'

const Moment = z.iso.datetime({ precision: 0 })

const Usage = z.object({
  used: z.int().min(0).describe('By calls that have ended.'),
  limit: z.int().min(0).nullable().describe('null: unlimited.'),
})

const members = {
  id: z.string(),
  object: z.literal('policy_gateway.quota'),
  subject: z
    .string()
    .describe('The id of the organization, project or key; of a user, what calls name it.'),
  window: z.enum(['daily', 'weekly', 'monthly']),
  window_start: Moment,
  window_end: Moment.describe('When the usage begins anew.'),
}

const QuotaItem = z
  .discriminatedUnion('kind', [
    z.object({
      ...members,
      kind: z.literal('quota'),
      scope: z.enum(['project', 'user']),
      requests: Usage,
      tokens: Usage,
    }),
    z.object({
      ...members,
      kind: z.literal('budget'),
      scope: z.enum(['organization', 'project', 'key']),
      credits: Usage,
      hard_stop: z.boolean(),
    }),
  ])
  .meta({ id: 'GatewayQuota' })
export type QuotaItem = z.infer<typeof QuotaItem>

export const listGatewayQuotas = adminEndpoint({
  id: 'listGatewayQuotas',
  summary: 'List budgets, and the quotas of projects and users with calls in the current window',
  method: 'GET',
  path: '/api/policy-gateway/quotas',
  permission: 'policy_gateway.read',
  query: ListQuery.omit({ order: true }).extend({
    // Longer than other ids: it has the name of a user in it.
    after: storedText(1, 300).optional().describe('The last_id of the page before.'),
    scope: z.enum(['organization', 'project', 'key', 'user']).optional(),
  }),
  response: listOf(QuotaItem).meta({ id: 'GatewayQuotas' }),
  errors: ['invalid_cursor'],
})
