import { pageOf } from '@gatehouse/contract/list'
import { listGuardrails, retrieveGuardrail } from '@gatehouse/contract/policy-gateway/guardrails'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { readPage } from '#http/read-page.ts'
import type { Db } from '#platform/database.ts'

import { findGuardrailPosition, listGuardrailRows } from './guardrail-store.ts'
import { presentGuardrail } from './present-guardrail.ts'
import { requireGuardrail } from './save-guardrail.ts'

export function serveListGuardrails(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listGuardrails, async ({ query }, { principal: { organizationId } }) => {
    const page = await readPage(query, (id) => findGuardrailPosition(db, organizationId, id))
    const rows = await listGuardrailRows(db, organizationId, page)
    return pageOf(rows.map(presentGuardrail), query.limit)
  })
}

export function serveRetrieveGuardrail(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, retrieveGuardrail, async ({ params }, { principal: { organizationId } }) => ({
    guardrail: presentGuardrail(await requireGuardrail(db, organizationId, params.guardrail_id)),
  }))
}
