import { updateProject } from '@gatehouse/contract/project'
import type { FastifyInstance } from 'fastify'

import type { AccessTools } from '#access/tools.ts'
import { bindMutation } from '#http/bind-mutation.ts'

import { lockActiveProject } from './lock-active-project.ts'
import { presentProject } from './present-project.ts'
import { saveProject } from './project-store.ts'

export function serveUpdateProject(app: FastifyInstance, tools: AccessTools) {
  bindMutation(app, updateProject, tools, {
    async change(tx, { params, body }, { principal }) {
      const project = await lockActiveProject(tx, principal.organizationId, params.project_id)
      const edited = { ...project, name: body.name ?? project.name }
      if (edited.name !== project.name) await saveProject(tx, principal.organizationId, edited)
      return presentProject(edited)
    },
  })
}
