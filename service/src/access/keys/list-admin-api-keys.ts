import { listAdminApiKeys } from '@gatehouse/contract/api-key'
import { pageOf } from '@gatehouse/contract/list'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { readPage } from '#http/read-page.ts'
import type { Db } from '#platform/database.ts'

import { findKeyPosition, listKeys } from './key-store.ts'
import { presentAdminKey } from './present-key.ts'

export function serveListAdminApiKeys(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listAdminApiKeys, async ({ query }, { principal }) => {
    const scope = { organizationId: principal.organizationId, projectId: null }
    const page = await readPage(query, (id) => findKeyPosition(db, scope, id))
    const rows = await listKeys(db, scope, page)
    return pageOf(rows.map(presentAdminKey), query.limit)
  })
}
