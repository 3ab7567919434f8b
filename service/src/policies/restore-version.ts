import { restorePolicyVersion } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { bindMutation } from '#http/bind-mutation.ts'

import { findCurrent, holdPolicy } from './find-policy.ts'
import { restoreVersion } from './policy.ts'
import { presentPolicy } from './present-policy.ts'
import { versionNotFound } from './refusals.ts'
import { saveChange } from './save-change.ts'
import type { PolicyTools } from './tools.ts'
import { findVersion } from './version-store.ts'

export function serveRestorePolicyVersion(app: FastifyInstance, tools: PolicyTools) {
  bindMutation(app, restorePolicyVersion, tools, {
    async change(tx, { params, body }, call) {
      const { organizationId } = call.principal
      const wanted = { organizationId, id: params.policy_id, revision: body.revision }
      const policy = await holdPolicy(tx, wanted)
      const place = { organizationId, policyId: policy.id }
      const version = await findVersion(tx, place, params.version)
      if (!version) throw versionNotFound()
      const current = await findCurrent(tx, organizationId, policy)
      const restored = restoreVersion(policy, version, tools.now())
      if (restored === policy) return presentPolicy(policy, current)
      return saveChange(tx, tools, call, {
        action: 'updated',
        before: { policy, current },
        after: { policy: restored, current },
        facts: { restored_version: version.version },
      })
    },
  })
}
