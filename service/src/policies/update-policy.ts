import { updatePolicy } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { bindMutation } from '#http/bind-mutation.ts'

import { findCurrent, holdPolicy } from './find-policy.ts'
import { editPolicy, isScopeSound } from './policy.ts'
import { presentPolicy } from './present-policy.ts'
import { invalidScope, requireGoodRule } from './refusals.ts'
import { requireProjects } from './require-projects.ts'
import { saveChange } from './save-change.ts'
import type { PolicyTools } from './tools.ts'

export function serveUpdatePolicy(app: FastifyInstance, tools: PolicyTools) {
  bindMutation(app, updatePolicy, tools, {
    prepare: ({ body }) => requireGoodRule(tools.checkRule, body.rule),
    async change(tx, { params, body }, call) {
      const { organizationId } = call.principal
      const wanted = { organizationId, id: params.policy_id, revision: body.revision }
      const policy = await holdPolicy(tx, wanted)
      const edited = editPolicy(policy, body, tools.now())
      if (!isScopeSound(edited)) throw invalidScope()
      await requireProjects(tx, organizationId, body.project_ids ?? [])
      const current = await findCurrent(tx, organizationId, policy)
      if (edited === policy) return presentPolicy(policy, current) // the same revision (G4.12)
      return saveChange(tx, tools, call, {
        action: 'updated',
        before: { policy, current },
        after: { policy: edited, current },
      })
    },
  })
}
