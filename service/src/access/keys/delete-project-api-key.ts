import { deleteProjectApiKey } from '@gatehouse/contract/api-key'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { findOverride } from '#access/limit-overrides/override-store.ts'
import { findProject } from '#access/projects/project-store.ts'
import { confirmStanding } from '#access/projects/standing.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { notFound } from '#platform/api-error.ts'

import { ownOnly } from './key-owner.ts'
import { revokeKey } from './key-store.ts'
import { presentProjectKey } from './present-key.ts'

export function serveDeleteProjectApiKey(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, deleteProjectApiKey, deps, {
    async change(tx, { params }, context) {
      const { principal } = context
      const { organizationId } = principal
      const project = await findProject(tx, organizationId, params.project_id)
      if (!project) throw notFound('project')
      const standing = await confirmStanding(tx, deleteProjectApiKey, principal, project.id)
      const memberId = ownOnly(standing, principal)
      const scope = { organizationId, projectId: project.id, ...(memberId && { memberId }) }
      const revoked = await revokeKey(tx, scope, params.key_id, deps.now())
      if (!revoked) throw notFound('api_key')
      const limits = await findOverride(tx, {
        organizationId,
        scope: 'key',
        scopeId: revoked.id,
      })
      const before = presentProjectKey(revoked, limits)
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'deleted',
        before,
        after: null,
        notifies: 'api_key',
      })
      return {
        id: revoked.id,
        object: 'organization.project.api_key.deleted' as const,
        deleted: true as const,
      }
    },
  })
}
