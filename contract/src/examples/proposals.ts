import type * as contract from '../policy-gateway/proposals.ts'
import { type ExampleOf, ids } from './example.ts'

const proposal: contract.GatewayProposal = {
  id: ids.proposal,
  object: 'policy_gateway.proposal',
  status: 'open',
  guardrail: { id: ids.guardrail, change: { mode: 'enforcing' } },
  comment: 'It recorded nothing wrong for two weeks.',
  set: null,
  take_over: false,
  proposed_by: ids.member,
  decided_by: null,
  created_at: '2026-11-02T09:00:00Z',
  decided_at: null,
}
const approver = 'mem_06f8q3k2r5s7t9v1w3x5y7r6'
const params = { proposal_id: ids.proposal }

export const proposalExamples = {
  listGatewayProposals: {
    query: { status: 'open' },
    answer: {
      object: 'list',
      data: [proposal],
      has_more: false,
      first_id: ids.proposal,
      last_id: ids.proposal,
    },
  } satisfies ExampleOf<typeof contract.listGatewayProposals>,
  createGatewayProposal: {
    body: {
      guardrail: { id: ids.guardrail, change: { mode: 'enforcing' } },
      comment: 'It recorded nothing wrong for two weeks.',
    },
    answer: { proposal },
  } satisfies ExampleOf<typeof contract.createGatewayProposal>,
  retrieveGatewayProposal: {
    params,
    answer: { proposal },
  } satisfies ExampleOf<typeof contract.retrieveGatewayProposal>,
  approveGatewayProposal: {
    params,
    answer: {
      proposal: {
        ...proposal,
        status: 'approved',
        decided_by: approver,
        decided_at: '2026-11-02T10:00:00Z',
      },
    },
  } satisfies ExampleOf<typeof contract.approveGatewayProposal>,
  withdrawGatewayProposal: {
    params,
    answer: {
      proposal: {
        ...proposal,
        status: 'withdrawn',
        decided_by: ids.member,
        decided_at: '2026-11-02T10:00:00Z',
      },
    },
  } satisfies ExampleOf<typeof contract.withdrawGatewayProposal>,
}
