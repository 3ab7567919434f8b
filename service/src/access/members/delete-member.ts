import { deleteMember } from '@gatehouse/contract/members/member'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { bindMutation } from '#http/bind-mutation.ts'

import { lockMembers, readManager, removeMember } from './change-member.ts'
import { requireWritableMember } from './writable-member.ts'

export function serveDeleteMember(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, deleteMember, deps, {
    async change(tx, { params }, context) {
      await lockMembers(tx, context.principal.organizationId)
      const manager = await readManager(tx, context)
      await requireWritableMember(tx, deps, context, params.member_id)
      const { id } = await removeMember(tx, params.member_id, manager, deps)
      return { id, object: 'organization.member.deleted' as const, deleted: true as const }
    },
  })
}
