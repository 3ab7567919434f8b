import { pageOf } from '@gatehouse/contract/list'
import { listMembers } from '@gatehouse/contract/members/member'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { readPage } from '#http/read-page.ts'
import type { Db } from '#platform/database.ts'

import { findMemberPosition, listMemberRows } from './member-store.ts'
import { presentMember } from './present-member.ts'

export function serveListMembers(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listMembers, async ({ query }, { principal: { organizationId } }) => {
    const page = await readPage(query, (id) => findMemberPosition(db, organizationId, id))
    const rows = await listMemberRows(db, organizationId, query, page)
    return pageOf(rows.map(presentMember), query.limit)
  })
}
