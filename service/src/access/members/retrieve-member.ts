import { retrieveMember } from '@gatehouse/contract/members/member'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { notFound } from '#platform/api-error.ts'
import type { Db } from '#platform/database.ts'

import { findMember } from './member-store.ts'
import { presentMember } from './present-member.ts'

export function serveRetrieveMember(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, retrieveMember, async ({ params }, { principal: { organizationId } }) => {
    const member = await findMember(db, organizationId, params.member_id)
    if (!member) throw notFound('member')
    return presentMember(member)
  })
}
