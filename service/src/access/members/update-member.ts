import { updateMember } from '@gatehouse/contract/members/member'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { bindMutation } from '#http/bind-mutation.ts'

import { editMember, lockMembers, readManager } from './change-member.ts'
import { presentMember } from './present-member.ts'
import { requireWritableMember } from './writable-member.ts'

export function serveUpdateMember(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, updateMember, deps, {
    async change(tx, { params, body }, context) {
      await lockMembers(tx, context.principal.organizationId)
      const manager = await readManager(tx, context)
      await requireWritableMember(tx, deps, context, params.member_id)
      const change = { id: params.member_id, edit: body }
      return presentMember(await editMember(tx, change, manager, deps))
    },
  })
}
