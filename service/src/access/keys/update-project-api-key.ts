import { updateProjectApiKey } from '@gatehouse/contract/api-key'
import type { FastifyInstance } from 'fastify'

import { areSameModels, editModels } from '#access/allowed-models/allowed-models.ts'
import type { AccessDeps } from '#access/deps.ts'
import { changeLimits } from '#access/limit-overrides/change-limits.ts'
import { refuseBudgetAboveOrganization } from '#access/limit-overrides/organization-budget.ts'
import { editBudget, isSameBudget, presentBudget } from '#access/limit-overrides/own-budget.ts'
import { lockActiveProject } from '#access/projects/lock-active-project.ts'
import { confirmStanding } from '#access/projects/standing.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { notFound } from '#platform/api-error.ts'

import { lockKey, saveKey } from './key-store.ts'
import { presentProjectKey } from './present-key.ts'
import { requireWritableKey } from './writable-key.ts'

export function serveUpdateProjectApiKey(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, updateProjectApiKey, deps, {
    async change(tx, { params, body }, context) {
      const { principal } = context
      const { organizationId } = principal
      const project = await lockActiveProject(tx, organizationId, params.project_id)
      const standing = await confirmStanding(tx, updateProjectApiKey, principal, project.id)
      if (standing !== 'permission') {
        const { findOrganizationBudget: find } = deps
        await refuseBudgetAboveOrganization(tx, organizationId, body.monthly_budget, find)
      }
      const locked = await lockKey(tx, { organizationId, projectId: project.id }, params.key_id)
      if (!locked) throw notFound('api_key')
      const key = await requireWritableKey(tx, deps, context, locked)
      const scope = { organizationId, scope: 'key', scopeId: key.id } as const
      const limits = await changeLimits(tx, scope, body.limits, deps.findOrganizationLimits)
      const budget = editBudget(key, body.monthly_budget)
      const allowed_models = editModels(key.allowed_models, body.allowed_models, deps.modelIdOf)
      const edited = { ...key, monthly_budget: budget, allowed_models }
      const isEdited =
        !isSameBudget(budget, presentBudget(key)) ||
        !areSameModels(allowed_models, key.allowed_models)
      const after = presentProjectKey(edited, limits.after)
      if (!limits.isChanged && !isEdited) return after
      if (isEdited) await saveKey(tx, organizationId, edited)
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
