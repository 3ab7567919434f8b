import { createMember } from '@gatehouse/contract/members/member'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { makeInvitation } from '#access/member-links/make-link.ts'
import { permissionDenied } from '#access/unauthorized.ts'
import { bindMutation } from '#http/bind-mutation.ts'

import { inviteMember, lockMembers, readManager } from './change-member.ts'
import { presentMember } from './present-member.ts'

export function serveCreateMember(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, createMember, deps, {
    prepare({ body }, { principal: { permissions } }) {
      // A key with the other permission of the contract may create an owner, and nothing else.
      if (permissions.has('members.write') || body.role === 'owner') return
      throw permissionDenied('members.write')
    },
    async change(tx, { body }, context) {
      await lockMembers(tx, context.principal.organizationId)
      const manager = await readManager(tx, context)
      const invitation = { ...body, managedBy: context.writer.set }
      const member = await inviteMember(tx, invitation, manager, deps)
      return { ...presentMember(member), ...(await makeInvitation(tx, member, deps)) }
    },
  })
}
