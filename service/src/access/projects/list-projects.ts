import { pageOf } from '@gatehouse/contract/list'
import { listProjects } from '@gatehouse/contract/project'
import type { FastifyInstance } from 'fastify'

import { findOverrides } from '#access/limit-overrides/override-store.ts'
import { bind } from '#http/bind.ts'
import { readPage } from '#http/read-page.ts'
import type { Db } from '#platform/database.ts'

import { presentProject } from './present-project.ts'
import { findProject, listProjects as readProjects } from './project-store.ts'

export function serveListProjects(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listProjects, async ({ query }, { principal: { organizationId } }) => {
    const page = await readPage(query, (id) => findProject(db, organizationId, id))
    const rows = await readProjects(db, organizationId, page)
    const ids = rows.map(({ id }) => id)
    const limits = await findOverrides(db, organizationId, 'project', ids)
    const projects = rows.map((row) => presentProject(row, limits.get(row.id) ?? {}))
    return pageOf(projects, query.limit)
  })
}
