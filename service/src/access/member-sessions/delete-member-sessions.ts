import { deleteMemberSessions } from '@gatehouse/contract/members/session'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { bindMutation } from '#http/bind-mutation.ts'

import { endMemberSessions } from './end-member-sessions.ts'

export function serveDeleteMemberSessions(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, deleteMemberSessions, deps, {
    async change(tx, { params }, context) {
      const { member_id: id } = params
      await endMemberSessions(tx, { memberId: id }, context, deps)
      return { id, object: 'organization.member.sessions.deleted' as const, deleted: true as const }
    },
  })
}
