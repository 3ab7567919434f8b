import { deletePolicy } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { noteBrokenGlass, nothingAsked } from '#access/two-persons/require-proposal.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'

import { requireApproval } from './approvals/require-approval.ts'
import type { PolicyDeps } from './deps.ts'
import { findCurrent, lockPolicyAt } from './find-policy.ts'
import { markPolicyDeleted, subtractFromPolicyCount } from './policy-store.ts'
import { presentPolicy } from './present-policy.ts'
import { enterEpoch } from './rollout/epoch-store.ts'
import { factsOf, versionInForce } from './save-change.ts'
import { replaceExamples } from './trials/example-store.ts'

export function serveDeletePolicy(app: FastifyInstance, deps: PolicyDeps) {
  bindMutation(app, deletePolicy, deps, {
    async change(tx, { params, query }, context) {
      const { organizationId } = context.principal
      const policy = await lockPolicyAt(tx, deps, context, {
        id: params.policy_id,
        revision: query.revision,
        param: 'query.revision',
      })
      const before = presentPolicy(policy, await findCurrent(tx, organizationId, policy))
      const glass = { policy, glass: query, isDraft: false }
      const permit =
        policy.state === 'enforcing' ? await requireApproval(tx, context, glass) : nothingAsked
      const at = deps.now()
      const isLive = versionInForce(policy) !== null
      await markPolicyDeleted(tx, organizationId, policy, at)
      // No endpoint returns them any more, and their texts can be sensitive.
      await replaceExamples(tx, { organizationId, policyId: policy.id }, [])
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'deleted',
        before,
        after: null,
        facts: { ...factsOf(policy), ...permit.facts },
        notifies: isLive ? 'policy' : 'policy_draft',
      })
      await noteBrokenGlass(tx, deps, context, { permit, resource: before })
      await subtractFromPolicyCount(tx, organizationId)
      if (isLive) await enterEpoch(tx, { organizationId, policyId: policy.id, version: null, at })
      return {
        id: policy.id,
        object: 'organization.policy.deleted' as const,
        deleted: true as const,
      }
    },
  })
}
