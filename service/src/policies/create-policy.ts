import { createPolicy } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { limitReached } from '#platform/api-error.ts'
import { createId } from '#platform/id.ts'

import { insertPolicy, takePlace } from './policy-store.ts'
import { draftPolicy, isScopeSound } from './policy.ts'
import { presentPolicy } from './present-policy.ts'
import { invalidScope, requireGoodRule } from './refusals.ts'
import { requireProjects } from './require-projects.ts'
import { factsOf } from './save-change.ts'
import type { PolicyTools } from './tools.ts'

export function serveCreatePolicy(app: FastifyInstance, tools: PolicyTools) {
  bindMutation(app, createPolicy, tools, {
    prepare: ({ body }) => requireGoodRule(tools.checkRule, body.rule),
    async change(tx, { body }, call) {
      const { organizationId } = call.principal
      const now = tools.now()
      const policy = draftPolicy(createId('pol', now), body, now)
      if (!isScopeSound(policy)) throw invalidScope()
      await requireProjects(tx, organizationId, body.project_ids ?? [])
      await insertPolicy(tx, organizationId, policy)
      const after = presentPolicy(policy, undefined)
      await tools.announce(tx, {
        ...{ organizationId, by: callerOf(call), action: 'created', before: null, after },
        ...{ facts: factsOf(policy), tells: 'policy_draft' },
      })
      // Last, because it locks the organization.
      if (!(await takePlace(tx, organizationId, tools.policiesMax))) {
        throw limitReached('policies', tools.policiesMax)
      }
      return after
    },
  })
}
