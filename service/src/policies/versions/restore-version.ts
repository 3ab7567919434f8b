import { restorePolicyVersion } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { bindMutation } from '#http/bind-mutation.ts'
import type { PolicyDeps } from '#policies/deps.ts'
import { findCurrent, lockPolicyAt } from '#policies/find-policy.ts'
import { restoreVersion } from '#policies/policy.ts'
import { presentPolicy } from '#policies/present-policy.ts'
import { versionNotFound } from '#policies/refusals.ts'
import { saveChange } from '#policies/save-change.ts'

import { findPatternCosts } from './pattern-cost-store.ts'
import { requireAffordable } from './require-affordable.ts'
import { findVersion } from './version-store.ts'

export function serveRestorePolicyVersion(app: FastifyInstance, deps: PolicyDeps) {
  bindMutation(app, restorePolicyVersion, deps, {
    async change(tx, { params, body }, context) {
      const { organizationId } = context.principal
      const wanted = { organizationId, id: params.policy_id, revision: body.revision }
      const policy = await lockPolicyAt(tx, deps, context, wanted)
      const key = { organizationId, policyId: policy.id }
      const version = await findVersion(tx, key, params.version)
      if (!version) throw versionNotFound()
      const current = await findCurrent(tx, organizationId, policy)
      const restored = restoreVersion(policy, version, deps.now())
      if (restored === policy) return presentPolicy(policy, current)
      const costs = await findPatternCosts(tx, key, version.version)
      await requireAffordable(tx, wanted, costs, deps.patternCostMaxMs)
      return saveChange(tx, deps, context, {
        action: 'updated',
        before: { policy, current },
        after: { policy: restored, current },
        facts: { restored_version: version.version },
      })
    },
  })
}
