import { deletePolicy } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'

import { enterEpoch } from './epoch-store.ts'
import { findCurrent, holdPolicy } from './find-policy.ts'
import { freePlace, markPolicyDeleted } from './policy-store.ts'
import { presentPolicy } from './present-policy.ts'
import { factsOf, versionInForce } from './save-change.ts'
import type { PolicyTools } from './tools.ts'

export function serveDeletePolicy(app: FastifyInstance, tools: PolicyTools) {
  bindMutation(app, deletePolicy, tools, {
    async change(tx, { params, query }, call) {
      const { organizationId } = call.principal
      const wanted = { organizationId, id: params.policy_id, revision: query.revision }
      const policy = await holdPolicy(tx, wanted, 'query.revision')
      const before = presentPolicy(policy, await findCurrent(tx, organizationId, policy))
      const at = tools.now()
      const isLive = versionInForce(policy) !== null
      await markPolicyDeleted(tx, organizationId, policy, at)
      await tools.announce(tx, {
        ...{ organizationId, by: callerOf(call), action: 'deleted', before, after: null },
        ...{ facts: factsOf(policy), tells: isLive ? 'policy' : 'policy_draft' },
      })
      await freePlace(tx, organizationId)
      if (isLive) await enterEpoch(tx, { organizationId, policyId: policy.id, version: null, at })
      return {
        id: policy.id,
        object: 'organization.policy.deleted' as const,
        deleted: true as const,
      }
    },
  })
}
