import { z } from 'zod'

import { adminEndpoint } from '../endpoint.ts'
import { listOf, ListQuery } from '../list.ts'
import { exemptFromSets } from '../managed.ts'
import { params, policyPath } from '../policy.ts'
import { Revision } from '../revision.ts'
import { AnyId, idOf, Timestamp } from '../text.ts'

// Where an organization asks for two persons (`publish_requires_approval`), what changes the policies in force needs the
// consent of another member.

/** The consent of a member to put this revision of a policy in force, back in force, or out of the way. */
const PolicyApproval = z
  .object({
    id: idOf('apr'),
    object: z.literal('organization.policy.approval'),
    policy_id: idOf('pol'),
    revision: Revision,
    member_id: idOf('mem'),
    created_at: Timestamp,
    counts: z
      .boolean()
      .describe(
        'false: the policy has changed since, or the member may not publish any more; approve again.',
      ),
  })
  .meta({ id: 'PolicyApproval' })
export type PolicyApproval = z.infer<typeof PolicyApproval>

const approvals = `${policyPath}/approvals` as const

export const listPolicyApprovals = adminEndpoint({
  id: 'listPolicyApprovals',
  summary: 'List the approvals of a policy, also those that do not count any more',
  method: 'GET',
  path: approvals,
  permission: 'policies.read',
  params,
  query: ListQuery,
  response: listOf(PolicyApproval).meta({ id: 'PolicyApprovalList' }),
  errors: ['invalid_cursor', 'policy_not_found'],
})

export const approvePolicy = adminEndpoint({
  id: 'approvePolicy',
  summary:
    'Approve a revision of a policy that another member drafted; approving it twice changes nothing',
  method: 'POST',
  path: approvals,
  permission: 'policies.publish',
  ...exemptFromSets,
  params,
  body: z.strictObject({ revision: Revision }).meta({ id: 'PolicyApprovalCreation' }),
  response: PolicyApproval,
  successStatus: 201,
  errors: ['policy_not_found', 'revision_conflict', 'limit_reached'],
})

export const withdrawPolicyApproval = adminEndpoint({
  id: 'withdrawPolicyApproval',
  summary: 'Withdraw an approval; what was published with it stays in force',
  method: 'DELETE',
  path: `${approvals}/:approval_id`,
  permission: 'policies.publish',
  params: params.extend({ approval_id: AnyId }),
  response: z
    .object({
      id: idOf('apr'),
      object: z.literal('organization.policy.approval.deleted'),
      deleted: z.literal(true),
    })
    .meta({ id: 'DeletedPolicyApproval' }),
  errors: ['policy_not_found', 'approval_not_found'],
})
