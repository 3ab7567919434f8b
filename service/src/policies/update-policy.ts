import { updatePolicy } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { bindMutation } from '#http/bind-mutation.ts'

import type { PolicyDeps } from './deps.ts'
import { findCurrent, lockPolicyAt } from './find-policy.ts'
import { editPolicy, isScopeValid } from './policy.ts'
import { presentPolicy } from './present-policy.ts'
import { invalidScope, requireValidRule } from './refusals.ts'
import { requireProjects } from './require-projects.ts'
import { saveChange } from './save-change.ts'

export function serveUpdatePolicy(app: FastifyInstance, deps: PolicyDeps) {
  bindMutation(app, updatePolicy, deps, {
    prepare: ({ body }, { principal: { organizationId } }) =>
      requireValidRule(deps.checkRule, organizationId, body.rule),
    async change(tx, { params, body }, context) {
      const { organizationId } = context.principal
      const wanted = { id: params.policy_id, revision: body.revision }
      const policy = await lockPolicyAt(tx, deps, context, wanted)
      const edited = editPolicy(policy, body, deps.now())
      if (!isScopeValid(edited)) throw invalidScope()
      await requireProjects(tx, organizationId, body.project_ids ?? [])
      const current = await findCurrent(tx, organizationId, policy)
      if (edited === policy) return presentPolicy(policy, current) // nothing changed: the same revision
      return saveChange(tx, deps, context, {
        action: 'updated',
        before: { policy, current },
        after: { policy: edited, current },
      })
    },
  })
}
