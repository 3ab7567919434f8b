import type * as contract from '../two-persons/approval.ts'
import { type ExampleOf, ids, morning } from './example.ts'

const approval: contract.PolicyApproval = {
  id: ids.approval,
  object: 'organization.policy.approval',
  policy_id: ids.policy,
  revision: 2,
  member_id: ids.member,
  created_at: morning + 120,
  counts: true,
}
const params = { policy_id: ids.policy }

export const approvalExamples = {
  listPolicyApprovals: {
    params,
    query: { limit: '20' },
    answer: {
      object: 'list',
      data: [approval],
      has_more: false,
      first_id: ids.approval,
      last_id: ids.approval,
    },
  } satisfies ExampleOf<typeof contract.listPolicyApprovals>,
  approvePolicy: {
    params,
    body: { revision: 2 },
    answer: approval,
  } satisfies ExampleOf<typeof contract.approvePolicy>,
  withdrawPolicyApproval: {
    params: { ...params, approval_id: ids.approval },
    answer: { id: ids.approval, object: 'organization.policy.approval.deleted', deleted: true },
  } satisfies ExampleOf<typeof contract.withdrawPolicyApproval>,
}
