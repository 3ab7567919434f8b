import { retrieveProject } from '@gatehouse/contract/project'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { notFound } from '#platform/api-error.ts'
import type { Db } from '#platform/database.ts'

import { presentProject } from './present-project.ts'
import { findProject } from './project-store.ts'

export function serveRetrieveProject(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, retrieveProject, async ({ params }, { principal }) => {
    const project = await findProject(db, principal.organizationId, params.project_id)
    if (!project) throw notFound('project')
    return presentProject(project)
  })
}
