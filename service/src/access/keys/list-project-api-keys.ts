import { listProjectApiKeys } from '@gatehouse/contract/api-key'
import { pageOf, toPage } from '@gatehouse/contract/list'
import type { FastifyInstance } from 'fastify'

import { findOverrides } from '#access/limit-overrides/override-store.ts'
import { findProject } from '#access/projects/project-store.ts'
import { requireStanding } from '#access/projects/standing.ts'
import { bind } from '#http/bind.ts'
import { readPage } from '#http/read-page.ts'
import { notFound } from '#platform/api-error.ts'
import type { Db } from '#platform/database.ts'

import { ownOnly } from './key-owner.ts'
import { findKeyPosition, listKeys } from './key-store.ts'
import { presentProjectKey } from './present-key.ts'

export function serveListProjectApiKeys(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listProjectApiKeys, async ({ params, query }, { principal }) => {
    const { organizationId } = principal
    const standing = requireStanding(listProjectApiKeys, principal, params.project_id)
    const project = await findProject(db, organizationId, params.project_id)
    if (!project) throw notFound('project')
    const memberId = toMember(query.member_id, ownOnly(standing, principal))
    if (memberId === null) return toPage([], false)
    const scope = { organizationId, projectId: project.id, ...(memberId && { memberId }) }
    const page = await readPage(query, (id) => findKeyPosition(db, scope, id))
    const rows = await listKeys(db, scope, page)
    const ids = rows.map(({ id }) => id)
    const limits = await findOverrides(db, organizationId, 'key', ids)
    const keys = rows.map((row) => presentProjectKey(row, limits.get(row.id) ?? {}))
    return pageOf(keys, query.limit)
  })
}

/** Whose keys are listed: undefined for all, null for no one's. */
function toMember(asked: string | undefined, allowed: string | undefined) {
  if (asked !== undefined && allowed !== undefined && asked !== allowed) return null
  return asked ?? allowed
}
