import { pageOf } from '@gatehouse/contract/list'
import { listProjectMembers } from '@gatehouse/contract/members/project-member'
import type { FastifyInstance } from 'fastify'

import { findProject } from '#access/projects/project-store.ts'
import { bind } from '#http/bind.ts'
import { readPage } from '#http/read-page.ts'
import { notFound } from '#platform/api-error.ts'
import type { Db } from '#platform/database.ts'

import { presentProjectMember } from './present-project-member.ts'
import { findProjectMember, listProjectMembers as readMembers } from './project-member-store.ts'

export function serveListProjectMembers(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listProjectMembers, async ({ params, query }, { principal: { organizationId } }) => {
    const project = await findProject(db, organizationId, params.project_id)
    if (!project) throw notFound('project')
    const scope = { organizationId, projectId: project.id }
    const page = await readPage(query, (memberId) => findProjectMember(db, { ...scope, memberId }))
    const rows = await readMembers(db, scope, page)
    return pageOf(rows.map(presentProjectMember), query.limit)
  })
}
