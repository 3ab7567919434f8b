import { createPolicy } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { limitReached } from '#platform/api-error.ts'
import { createId } from '#platform/id.ts'

import type { PolicyDeps } from './deps.ts'
import { addToPolicyCount, insertPolicy } from './policy-store.ts'
import { draftPolicy, isScopeValid } from './policy.ts'
import { presentPolicy } from './present-policy.ts'
import { invalidScope, requireValidRule } from './refusals.ts'
import { requireProjects } from './require-projects.ts'
import { factsOf } from './save-change.ts'

export function serveCreatePolicy(app: FastifyInstance, deps: PolicyDeps) {
  bindMutation(app, createPolicy, deps, {
    prepare: ({ body }, { principal: { organizationId } }) =>
      requireValidRule(deps.checkRule, organizationId, body.rule),
    async change(tx, { body }, context) {
      const { organizationId } = context.principal
      const now = deps.now()
      const made = { id: createId('pol', now), managedBy: context.writer.set, now }
      const policy = { ...draftPolicy(body, made), drafted_by: context.principal.credentialId }
      if (!isScopeValid(policy)) throw invalidScope()
      await requireProjects(tx, organizationId, body.project_ids ?? [])
      await insertPolicy(tx, organizationId, policy)
      const after = presentPolicy(policy, undefined)
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'created',
        before: null,
        after,
        facts: factsOf(policy),
        notifies: 'policy_draft',
      })
      // Last, because it locks the organization's row.
      if (!(await addToPolicyCount(tx, organizationId, deps.policiesMax))) {
        throw limitReached('policies', deps.policiesMax)
      }
      return after
    },
  })
}
