import { pageOf } from '@gatehouse/contract/list'
import { listPolicies } from '@gatehouse/contract/policy'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { readPage } from '#http/read-page.ts'
import type { Db } from '#platform/database.ts'

import { findPolicyPosition, listPolicies as readPolicies } from './policy-store.ts'
import { presentSummary } from './present-policy.ts'

export function serveListPolicies(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listPolicies, async ({ query }, { principal: { organizationId } }) => {
    const page = await readPage(query, (id) => findPolicyPosition(db, organizationId, id))
    const rows = await readPolicies(db, organizationId, page)
    return pageOf(rows.map(presentSummary), query.limit)
  })
}
