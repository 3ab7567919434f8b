import { createProject } from '@gatehouse/contract/project'
import type { FastifyInstance } from 'fastify'

import { toAllowedModels } from '#access/allowed-models/allowed-models.ts'
import type { AccessDeps } from '#access/deps.ts'
import { lockOrganization } from '#access/organizations/organization-store.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { limitReached } from '#platform/api-error.ts'
import { createId } from '#platform/id.ts'

import { presentProject } from './present-project.ts'
import { countProjects, insertProject } from './project-store.ts'

const projectsMax = 10_000

export function serveCreateProject(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, createProject, deps, {
    async change(tx, { body }, context) {
      const { organizationId } = context.principal
      await lockOrganization(tx, organizationId)
      if ((await countProjects(tx, organizationId)) >= projectsMax) {
        throw limitReached('projects', projectsMax)
      }
      const now = deps.now()
      const project = await insertProject(tx, organizationId, {
        id: createId('proj', now),
        name: body.name,
        isDefault: false,
        managedBy: context.writer.set,
        createdAt: now,
        allowedModels: toAllowedModels(body.allowed_models, deps.modelIdOf),
        labels: body.labels ?? {},
      })
      const after = presentProject(project, {})
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'created',
        before: null,
        after,
      })
      return after
    },
  })
}
