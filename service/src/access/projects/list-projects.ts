import { pageOf } from '@gatehouse/contract/list'
import { listProjects } from '@gatehouse/contract/project'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { readPage } from '#http/read-page.ts'
import type { Db } from '#platform/database.ts'

import { presentProject } from './present-project.ts'
import { findProject, listProjects as readProjects } from './project-store.ts'

export function serveListProjects(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listProjects, async ({ query }, { principal: { organizationId } }) => {
    const page = await readPage(query, (id) => findProject(db, organizationId, id))
    const rows = await readProjects(db, organizationId, page)
    return pageOf(rows.map(presentProject), query.limit)
  })
}
