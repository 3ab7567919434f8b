import { deleteProjectMember } from '@gatehouse/contract/members/project-member'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { endOwnKeys } from '#access/keys/end-own-keys.ts'
import { lockProject } from '#access/projects/project-store.ts'
import { confirmStanding } from '#access/projects/standing.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { notFound } from '#platform/api-error.ts'

import { presentProjectMember } from './present-project-member.ts'
import { findProjectMember, removeProjectMember } from './project-member-store.ts'

export function serveDeleteProjectMember(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, deleteProjectMember, deps, {
    async change(tx, { params }, context) {
      const { principal } = context
      const { organizationId } = principal
      const project = await lockProject(tx, organizationId, params.project_id)
      if (!project) throw notFound('project')
      await confirmStanding(tx, deleteProjectMember, principal, project.id)
      const membership = { organizationId, projectId: project.id, memberId: params.member_id }
      const removed = await findProjectMember(tx, membership)
      if (!removed) throw notFound('member')
      await removeProjectMember(tx, membership)
      // After the removal: it has waited for a request that was making a key at the same time.
      await endOwnKeys(tx, membership, callerOf(context), deps)
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'deleted',
        before: presentProjectMember(removed),
        after: null,
        notifies: 'member',
      })
      return {
        id: removed.id,
        object: 'organization.project.member.deleted' as const,
        deleted: true as const,
      }
    },
  })
}
