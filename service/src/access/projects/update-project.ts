import { updateProject } from '@gatehouse/contract/project'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { changeLimits } from '#access/limit-overrides/change-limits.ts'
import { editBudget, isSameBudget, presentBudget } from '#access/limit-overrides/own-budget.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'

import { lockActiveProject } from './lock-active-project.ts'
import { presentProject } from './present-project.ts'
import { saveProject } from './project-store.ts'

export function serveUpdateProject(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, updateProject, deps, {
    async change(tx, { params, body }, context) {
      const { organizationId } = context.principal
      const project = await lockActiveProject(tx, organizationId, params.project_id)
      const budget = editBudget(project, body.monthly_budget)
      const edited = { ...project, name: body.name ?? project.name, monthly_budget: budget }
      const scope = { organizationId, scope: 'project', scopeId: project.id } as const
      const limits = await changeLimits(tx, scope, body.limits, deps.findOrganizationLimits)
      const before = presentProject(project, limits.before)
      const after = presentProject(edited, limits.after)
      const isBudgetChanged = !isSameBudget(budget, presentBudget(project))
      const isEdited = edited.name !== project.name || isBudgetChanged
      if (!isEdited && !limits.isChanged) return before
      if (isEdited) await saveProject(tx, organizationId, edited)
      if (budget && !presentBudget(project)) {
        await deps.countEarlierUsage(tx, { organizationId, scope: 'project', subject: project.id })
      }
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'updated',
        before,
        after,
        ...((limits.isChanged || isBudgetChanged) && { notifies: 'limits' }),
      })
      return after
    },
  })
}
