import { deleteProjectApiKey } from '@gatehouse/contract/api-key'
import type { FastifyInstance } from 'fastify'

import { findProject } from '#access/projects/project-store.ts'
import type { AccessTools } from '#access/tools.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { notFound } from '#platform/api-error.ts'

import { revokeKey } from './key-store.ts'
import { presentProjectKey } from './present-key.ts'

export function serveDeleteProjectApiKey(app: FastifyInstance, tools: AccessTools) {
  bindMutation(app, deleteProjectApiKey, tools, {
    async change(tx, { params }, call) {
      const { organizationId } = call.principal
      const project = await findProject(tx, organizationId, params.project_id)
      if (!project) throw notFound('project')
      const place = { organizationId, projectId: project.id }
      const revoked = await revokeKey(tx, place, params.key_id, tools.now())
      if (!revoked) throw notFound('api_key')
      const before = presentProjectKey(revoked)
      await tools.announce(tx, {
        organizationId,
        by: callerOf(call),
        action: 'deleted',
        before,
        after: null,
        tells: 'api_key',
      })
      return {
        id: revoked.id,
        object: 'organization.project.api_key.deleted' as const,
        deleted: true as const,
      }
    },
  })
}
