import { createMemberInvitation } from '@gatehouse/contract/members/member'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { makeInvitation } from '#access/member-links/make-link.ts'
import { bindMutation } from '#http/bind-mutation.ts'

import { inviteAgain, lockMembers, readManager } from './change-member.ts'

/** Makes a new link for a member who has not signed in yet, for example because the first one has expired. */
export function serveCreateMemberInvitation(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, createMemberInvitation, deps, {
    async change(tx, { params }, context) {
      await lockMembers(tx, context.principal.organizationId)
      const manager = await readManager(tx, context)
      const member = await inviteAgain(tx, { id: params.member_id }, manager, deps)
      const object = 'organization.member.invitation' as const
      const { id, email } = member
      return { id, object, email, ...(await makeInvitation(tx, member, deps)) }
    },
  })
}
