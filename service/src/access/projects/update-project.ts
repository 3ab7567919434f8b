import { updateProject } from '@gatehouse/contract/project'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { changeLimits } from '#access/limit-overrides/change-limits.ts'
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
      const edited = { ...project, name: body.name ?? project.name }
      const scope = { organizationId, scope: 'project', scopeId: project.id } as const
      const limits = await changeLimits(tx, scope, body.limits, deps.findOrganizationLimits)
      const before = presentProject(project, limits.before)
      const after = presentProject(edited, limits.after)
      const isRenamed = edited.name !== project.name
      if (!isRenamed && !limits.isChanged) return before
      if (isRenamed) await saveProject(tx, organizationId, edited)
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'updated',
        before,
        after,
        ...(limits.isChanged && { notifies: 'limits' }),
      })
      return after
    },
  })
}
