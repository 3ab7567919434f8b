import { updateProjectApiKey } from '@gatehouse/contract/api-key'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { changeLimits } from '#access/limit-overrides/change-limits.ts'
import { editBudget, isSameBudget, presentBudget } from '#access/limit-overrides/own-budget.ts'
import { lockActiveProject } from '#access/projects/lock-active-project.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { notFound } from '#platform/api-error.ts'

import { lockKey, saveKeyBudget } from './key-store.ts'
import { presentProjectKey } from './present-key.ts'

export function serveUpdateProjectApiKey(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, updateProjectApiKey, deps, {
    async change(tx, { params, body }, context) {
      const { organizationId } = context.principal
      const project = await lockActiveProject(tx, organizationId, params.project_id)
      const key = await lockKey(tx, { organizationId, projectId: project.id }, params.key_id)
      if (!key) throw notFound('api_key')
      const scope = { organizationId, scope: 'key', scopeId: key.id } as const
      const limits = await changeLimits(tx, scope, body.limits, deps.findOrganizationLimits)
      const budget = editBudget(key, body.monthly_budget)
      const isBudgetChanged = !isSameBudget(budget, presentBudget(key))
      const after = presentProjectKey({ ...key, monthly_budget: budget }, limits.after)
      if (!limits.isChanged && !isBudgetChanged) return after
      if (isBudgetChanged) await saveKeyBudget(tx, { organizationId, id: key.id }, budget)
      if (budget && !presentBudget(key)) {
        await deps.countEarlierUsage(tx, { organizationId, scope: 'key', subject: key.id })
      }
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'updated',
        before: presentProjectKey(key, limits.before),
        after,
        notifies: 'limits',
      })
      return after
    },
  })
}
