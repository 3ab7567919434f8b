import { retrieveProject } from '@gatehouse/contract/project'
import type { FastifyInstance } from 'fastify'

import { findOverride } from '#access/limit-overrides/override-store.ts'
import { bind } from '#http/bind.ts'
import { notFound } from '#platform/api-error.ts'
import type { Db } from '#platform/database.ts'

import { presentProject } from './present-project.ts'
import { findProject } from './project-store.ts'

export function serveRetrieveProject(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, retrieveProject, async ({ params }, { principal: { organizationId } }) => {
    const project = await findProject(db, organizationId, params.project_id)
    if (!project) throw notFound('project')
    const scope = { organizationId, scope: 'project', scopeId: project.id } as const
    return presentProject(project, await findOverride(db, scope))
  })
}
