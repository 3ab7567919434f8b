import { archiveProject } from '@gatehouse/contract/project'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { findOverride } from '#access/limit-overrides/override-store.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { ApiError, notFound } from '#platform/api-error.ts'

import { presentProject } from './present-project.ts'
import { lockProject, type ProjectRow, saveProject } from './project-store.ts'
import { requireWritableProject } from './writable-project.ts'

export function serveArchiveProject(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, archiveProject, deps, {
    async change(tx, { params }, context) {
      const { organizationId } = context.principal
      const locked = await lockProject(tx, organizationId, params.project_id)
      if (!locked) throw notFound('project')
      const project = await requireWritableProject(tx, deps, context, locked)
      if (project.is_default) {
        throw new ApiError(
          'default_project',
          'The default project cannot be archived, because tokens that name no project use it.',
        )
      }
      const scope = { organizationId, scope: 'project', scopeId: project.id } as const
      const limits = await findOverride(tx, scope)
      if (project.status === 'archived') return presentProject(project, limits)
      const archived: ProjectRow = { ...project, status: 'archived', archived_at: deps.now() }
      await saveProject(tx, organizationId, archived)
      const [before, after] = [presentProject(project, limits), presentProject(archived, limits)]
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'archived',
        before,
        after,
        notifies: 'project',
      })
      return after
    },
  })
}
