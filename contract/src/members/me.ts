import { z } from 'zod'

import { adminEndpoint } from '../endpoint.ts'
import { Plan, Tier } from '../limits.ts'
import { Permission } from '../permission.ts'
import { ProjectRole, Role } from '../role.ts'
import { idOf } from '../text.ts'
import { Member } from './member.ts'

/** How many of a member's projects are listed. */
export const ownProjectsMax = 100

const Features = z
  .object({
    judge: z.boolean().describe('Rules in plain language can be evaluated.'),
    tokens: z.boolean().describe('Callers can send tokens of an issuer.'),
    payments: z.boolean().describe('Payments and subscriptions arrive through Stripe.'),
  })
  .describe('What the operator of this gateway has set up.')
export type Features = z.infer<typeof Features>

const Me = z
  .object({
    object: z.literal('organization.me'),
    credential: z.object({
      kind: z.enum(['admin_key', 'session']),
      id: z.string().nullable().describe('The administrator key; null: a member has signed in.'),
    }),
    member: Member.nullable().describe('null: no person, but a key.'),
    csrf_token: z
      .string()
      .nullable()
      .describe(
        'What a page sends in x-gatehouse-csrf with each change; null outside of browsers.',
      ),
    organization: z.object({ id: idOf('org'), name: z.string() }),
    role: Role.nullable().describe('null: a key, which has permissions of its own.'),
    role_source: z.string().nullable().describe('`assigned`, or the group that has given it.'),
    permissions: z.array(Permission),
    projects: z
      .array(z.object({ id: idOf('proj'), name: z.string(), role: ProjectRole }))
      .max(ownProjectsMax)
      .describe('The active projects that the member belongs to; for keys none.'),
    has_more_projects: z.boolean(),
    read_only: z
      .boolean()
      .describe('Every change is refused, because the operator lets sessions read only.'),
    plan: Plan,
    tier: Tier,
    billing: z.enum(['prepaid', 'metered', 'off']),
    features: Features,
  })
  .meta({ id: 'Me' })
export type Me = z.infer<typeof Me>

export const readMe = adminEndpoint({
  id: 'readMe',
  summary: 'Read who you are, and what you may do',
  method: 'GET',
  path: '/v1/organization/me',
  permission: 'any',
  response: Me,
  isConditional: true,
  errors: [],
})
