import { z } from 'zod'

import { adminEndpoint, gatewayBodyLimitBytes, gatewayEndpoint } from '../endpoint.ts'
import { listOf, ListQuery } from '../list.ts'
import { changesManaged } from '../managed.ts'
import { AnyId, idOf, trimmedText } from '../text.ts'
import { GatewayConfig, GivenGatewayConfig } from './config.ts'
import { Moment } from './gateway.ts'
import { Guardrail, GuardrailChange, NewGuardrail } from './guardrails.ts'

// Where an organization asks for two persons, one proposes a change of the policy gateway, and a member approves it, which
// makes the change.

const comment = trimmedText(1, 500)

const Rule = z.strictObject({ publish_requires_approval: z.literal(false) })

const proposable = {
  config: GivenGatewayConfig.optional().describe('Saves this configuration.'),
  restore: AnyId.optional().describe('Saves the revision of this entry of the history again.'),
  new_guardrail: NewGuardrail.optional().describe('Creates a guardrail.'),
  guardrail: z
    .strictObject({ id: AnyId, change: GuardrailChange })
    .optional()
    .describe('Changes a guardrail.'),
  deleted_guardrail: AnyId.optional().describe('Deletes the guardrail with this id.'),
  settings: Rule.optional().describe('Ends the rule that two persons are needed.'),
}
const kinds = Object.keys(proposable)

const ProposalCreation = z
  .strictObject({ ...proposable, comment: comment.optional() })
  .refine((body) => kinds.filter((kind) => kind in body).length === 1, {
    error: `must have one of the members ${kinds.join(', ')}`,
  })
  .meta({ id: 'GatewayProposalCreation' })
export type ProposalCreation = z.output<typeof ProposalCreation>

const ProposalStatus = z.enum(['open', 'approved', 'withdrawn'])
export type ProposalStatus = z.infer<typeof ProposalStatus>

const GatewayProposal = z
  .object({
    id: idOf('prop'),
    object: z.literal('policy_gateway.proposal'),
    status: ProposalStatus,
    config: GatewayConfig.optional(),
    restore: z.string().optional(),
    new_guardrail: Guardrail.omit({
      id: true,
      object: true,
      managed_by: true,
      created_at: true,
      updated_at: true,
    })
      .meta({ id: 'ProposedGuardrail' })
      .optional(),
    guardrail: z.object({ id: z.string(), change: GuardrailChange }).optional(),
    deleted_guardrail: z.string().optional(),
    settings: Rule.optional(),
    comment: z.string().nullable(),
    set: z.string().nullable().describe('The set for which the change is proposed; null: none.'),
    take_over: z
      .boolean()
      .describe('Whether the change takes over what another set manages, or none.'),
    proposed_by: z.string().describe('The id of a member or of a key, or issuer and subject.'),
    decided_by: z.string().nullable().describe('Who approved or withdrew it; null: it is open.'),
    created_at: Moment,
    decided_at: Moment.nullable(),
  })
  .meta({ id: 'GatewayProposal' })
export type GatewayProposal = z.infer<typeof GatewayProposal>

const Answer = z.object({ proposal: GatewayProposal }).meta({ id: 'GatewayProposalAnswer' })

const proposals = '/api/policy-gateway/proposals'
const proposal = `${proposals}/:proposal_id` as const
const params = z.object({ proposal_id: AnyId })

export const listGatewayProposals = gatewayEndpoint({
  id: 'listGatewayProposals',
  summary: 'List the open proposals and the last 50 decided ones, the newest first',
  method: 'GET',
  path: proposals,
  permission: 'policy_gateway.read',
  query: ListQuery.extend({
    order: z.enum(['asc', 'desc']).default('desc').describe('By time of creation.'),
    status: ProposalStatus.optional(),
  }),
  response: listOf(GatewayProposal).meta({ id: 'GatewayProposalList' }),
  errors: ['invalid_cursor'],
})

export const createGatewayProposal = gatewayEndpoint({
  id: 'createGatewayProposal',
  summary: 'Propose a change of the policy gateway; nothing changes before a member approves it',
  method: 'POST',
  path: proposals,
  permission: 'policy_gateway.write',
  ...changesManaged,
  body: ProposalCreation,
  response: Answer,
  successStatus: 201,
  errors: [
    'invalid_gateway_config',
    'history_entry_not_found',
    'guardrail_not_found',
    'unknown_project',
    'guardrail_name_taken',
    'limit_reached',
  ],
})

export const retrieveGatewayProposal = gatewayEndpoint({
  id: 'retrieveGatewayProposal',
  summary: 'Read a proposal',
  method: 'GET',
  path: proposal,
  permission: 'policy_gateway.read',
  params,
  response: Answer,
  errors: ['proposal_not_found'],
})

export const approveGatewayProposal = adminEndpoint({
  id: 'approveGatewayProposal',
  summary: 'Approve a proposal that another caller made; approving makes the change',
  method: 'POST',
  path: `${proposal}/approve`,
  permission: 'policies.publish',
  bodyLimitBytes: gatewayBodyLimitBytes,
  params,
  response: Answer,
  errors: [
    'proposal_not_found',
    'approval_outdated',
    'invalid_gateway_config',
    'unknown_project',
    'guardrail_name_taken',
    'limit_reached',
  ],
})

export const withdrawGatewayProposal = gatewayEndpoint({
  id: 'withdrawGatewayProposal',
  summary: 'Withdraw a proposal, also one of another caller',
  method: 'DELETE',
  path: proposal,
  permission: 'policy_gateway.write',
  params,
  response: Answer,
  errors: ['proposal_not_found'],
})
