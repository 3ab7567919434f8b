import { archiveProject } from '@gatehouse/contract/project'
import type { FastifyInstance } from 'fastify'

import type { AccessTools } from '#access/tools.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { ApiError, notFound } from '#platform/api-error.ts'

import { presentProject } from './present-project.ts'
import { lockProject, type ProjectRow, saveProject } from './project-store.ts'

export function serveArchiveProject(app: FastifyInstance, tools: AccessTools) {
  bindMutation(app, archiveProject, tools, {
    async change(tx, { params }, call) {
      const { organizationId } = call.principal
      const project = await lockProject(tx, organizationId, params.project_id)
      if (!project) throw notFound('project')
      if (project.is_default) {
        throw new ApiError('default_project', 'The default project cannot be archived.')
      }
      if (project.status === 'archived') return presentProject(project)
      const archived: ProjectRow = { ...project, status: 'archived', archived_at: tools.now() }
      await saveProject(tx, organizationId, archived)
      const [before, after] = [presentProject(project), presentProject(archived)]
      await tools.announce(tx, {
        organizationId,
        by: callerOf(call),
        action: 'archived',
        before,
        after,
        tells: 'project',
      })
      return after
    },
  })
}
