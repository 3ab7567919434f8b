import { type ProjectEdit, updateProject } from '@gatehouse/contract/project'
import type { FastifyInstance } from 'fastify'

import { areSameModels, editModels } from '#access/allowed-models/allowed-models.ts'
import type { AccessDeps } from '#access/deps.ts'
import { areSameLabels, editLabels, readLabels } from '#access/labels/labels.ts'
import { changeLimits } from '#access/limit-overrides/change-limits.ts'
import { refuseBudgetAboveOrganization } from '#access/limit-overrides/organization-budget.ts'
import { editBudget, isSameBudget } from '#access/limit-overrides/own-budget.ts'
import { permissionDenied } from '#access/unauthorized.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'

import { areSameKeyDefaults, editKeyDefaults } from './key-defaults.ts'
import { lockActiveProject } from './lock-active-project.ts'
import { presentProject } from './present-project.ts'
import { type ProjectRow, saveProject } from './project-store.ts'
import { confirmStanding, requireStanding, type ProjectStanding } from './standing.ts'
import { requireWritableProject } from './writable-project.ts'

export function serveUpdateProject(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, updateProject, deps, {
    prepare({ params, body }, { principal }) {
      refuseOthers(requireStanding(updateProject, principal, params.project_id), body)
    },
    async change(tx, { params, body }, context) {
      const { principal } = context
      const { organizationId } = principal
      const active = await lockActiveProject(tx, organizationId, params.project_id)
      const standing = await confirmStanding(tx, updateProject, principal, active.id)
      const project = await requireWritableProject(tx, deps, context, active)
      if (standing !== 'permission') {
        const { findOrganizationBudget: find } = deps
        await refuseBudgetAboveOrganization(tx, organizationId, body.monthly_budget, find)
      }
      const edited = editProject(project, body, deps.modelIdOf)
      const scope = { organizationId, scope: 'project', scopeId: project.id } as const
      const limits = await changeLimits(tx, scope, body.limits, deps.findOrganizationLimits)
      const before = presentProject(project, limits.before)
      const after = presentProject(edited, limits.after)
      const isBudgetChanged = !isSameBudget(before.monthly_budget, after.monthly_budget)
      const areModelsChanged = !areSameModels(before.allowed_models, after.allowed_models)
      const areLabelsChanged = !areSameLabels(before.labels, after.labels)
      const isEdited =
        isBudgetChanged ||
        areModelsChanged ||
        areLabelsChanged ||
        after.name !== before.name ||
        !areSameKeyDefaults(before.key_defaults, after.key_defaults)
      if (!isEdited && !limits.isChanged) return before
      if (isEdited) await saveProject(tx, organizationId, edited)
      if (after.monthly_budget && !before.monthly_budget) {
        await deps.countEarlierUsage(tx, { organizationId, scope: 'project', subject: project.id })
      }
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'updated',
        before,
        after,
        // The name and the labels, too: the events of calls have them.
        notifies: 'limits',
      })
      return after
    },
  })
}

const editProject = (
  project: ProjectRow,
  body: ProjectEdit,
  modelIdOf: AccessDeps['modelIdOf'],
): ProjectRow => ({
  ...project,
  name: body.name ?? project.name,
  monthly_budget: editBudget(project, body.monthly_budget),
  key_defaults: editKeyDefaults(project, body.key_defaults),
  labels: editLabels(readLabels(project.labels), body.labels),
  allowed_models: editModels(project.allowed_models, body.allowed_models, modelIdOf),
})

/** What a project_admin changes. A list of what is allowed: what projects get later is not, until it stands here. */
const ofAdmins: ReadonlySet<string> = new Set(['limits', 'monthly_budget', 'key_defaults'])

/** A project's name is how the organization knows it in reports, so that its own administrators cannot change it. */
function refuseOthers(standing: ProjectStanding, body: ProjectEdit) {
  if (standing === 'permission') return
  const other = Object.entries(body).find(
    ([name, value]) => value !== undefined && !ofAdmins.has(name),
  )
  if (!other) return
  throw permissionDenied(
    'projects.write',
    `A project_admin cannot change \`${other[0]}\` of the project; leave it out, or ask an administrator.`,
  )
}
