import { pageOf } from '@gatehouse/contract/list'
import {
  approvePolicy,
  listPolicyApprovals,
  type PolicyApproval,
  withdrawPolicyApproval,
} from '@gatehouse/contract/two-persons/approval'
import type { FastifyInstance } from 'fastify'

import { permissionDenied } from '#access/unauthorized.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { bind } from '#http/bind.ts'
import type { ActingMember, Principal } from '#http/principal.ts'
import { readPage } from '#http/read-page.ts'
import { notFound } from '#platform/api-error.ts'
import { toSeconds } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { createId } from '#platform/id.ts'
import type { PolicyDeps } from '#policies/deps.ts'
import { lockPolicyAt, requirePolicy } from '#policies/find-policy.ts'
import { lockPolicy } from '#policies/policy-store.ts'
import type { Policy } from '#policies/policy.ts'
import { factsOf } from '#policies/save-change.ts'

import {
  type Approval,
  deleteApproval,
  findApprovalPosition,
  findApprovals,
  insertApproval,
  listApprovals,
} from './approval-store.ts'
import { mayConsent } from './two-persons.ts'

export function serveListPolicyApprovals(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listPolicyApprovals, async ({ params, query }, { principal: { organizationId } }) => {
    const policy = await requirePolicy(db, organizationId, params.policy_id)
    const key = { organizationId, policyId: policy.id }
    const page = await readPage(query, (id) => findApprovalPosition(db, key, id))
    const rows = await listApprovals(db, key, page)
    return pageOf(
      rows.map((row) => present(row, policy)),
      query.limit,
    )
  })
}

export function serveApprovePolicy(app: FastifyInstance, deps: PolicyDeps) {
  bindMutation(app, approvePolicy, deps, {
    prepare: (_, { principal }) => void requirePerson(principal),
    async change(tx, { params, body }, context) {
      const { organizationId } = context.principal
      const member = requirePerson(context.principal)
      const wanted = { id: params.policy_id, revision: body.revision }
      const policy = await lockPolicyAt(tx, deps, context, wanted)
      if (policy.drafted_by === member.id) throw ownDraft()
      const key = { organizationId, policyId: policy.id }
      const earlier = (await findApprovals(tx, key)).find(
        ({ revision, memberId }) => revision === policy.revision && memberId === member.id,
      )
      if (earlier) return present(earlier, policy)
      const now = deps.now()
      const made: Approval = {
        id: createId('apr', now),
        policyId: policy.id,
        revision: policy.revision,
        memberId: member.id,
        createdAt: now,
        memberRole: member.role,
        isMemberActive: true,
      }
      await insertApproval(tx, key, made)
      const after = present(made, policy)
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'created',
        before: null,
        after,
        facts: factsOf(policy),
      })
      return after
    },
  })
}

export function serveWithdrawPolicyApproval(app: FastifyInstance, deps: PolicyDeps) {
  bindMutation(app, withdrawPolicyApproval, deps, {
    async change(tx, { params }, context) {
      const { organizationId, member } = context.principal
      // The lock keeps an approval in place while a change that relies on it is under way.
      const policy = await lockPolicy(tx, organizationId, params.policy_id)
      if (!policy) throw notFound('policy')
      const key = { organizationId, policyId: policy.id }
      const before = (await findApprovals(tx, key)).find(({ id }) => id === params.approval_id)
      if (!before || before.memberId !== member?.id) throw notFound('approval')
      await deleteApproval(tx, key, before.id)
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'deleted',
        before: present(before, policy),
        after: null,
        facts: factsOf(policy),
      })
      return {
        id: before.id,
        object: 'organization.policy.approval.deleted' as const,
        deleted: true as const,
      }
    },
  })
}

/** An approval is the word of a person: a key has none to give. */
export function requirePerson({ member }: Principal): ActingMember {
  if (member) return member
  throw permissionDenied(
    'policies.publish',
    'Only a member who has signed in can approve; keys approve nothing.',
  )
}

const ownDraft = () =>
  permissionDenied(
    'policies.publish',
    'You made the last change of this draft, so another member has to approve it.',
  )

const present = (approval: Approval, policy: Policy): PolicyApproval => ({
  id: approval.id,
  object: 'organization.policy.approval',
  policy_id: approval.policyId,
  revision: approval.revision,
  member_id: approval.memberId,
  created_at: toSeconds(approval.createdAt),
  counts: approval.revision === policy.revision && mayConsent(approval),
})
