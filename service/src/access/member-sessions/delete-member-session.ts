import { deleteMemberSession } from '@gatehouse/contract/members/session'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { notFound } from '#platform/api-error.ts'

import { endMemberSessions } from './end-member-sessions.ts'

export function serveDeleteMemberSession(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, deleteMemberSession, deps, {
    async change(tx, { params }, context) {
      const { member_id: memberId, session_id: id } = params
      const ended = await endMemberSessions(tx, { memberId, sessionId: id }, context, deps)
      if (ended.length === 0) throw notFound('session')
      return { id, object: 'organization.session.deleted' as const, deleted: true as const }
    },
  })
}
