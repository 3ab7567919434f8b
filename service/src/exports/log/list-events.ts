import { listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import { toPage } from '@gatehouse/contract/list'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { invalidCursor } from '#http/read-page.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Db } from '#platform/database.ts'

import { hasEvent, listEvents } from './event-list-store.ts'
import { presentEvent } from './present-record.ts'

export function serveListAuditEvents(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listAuditEvents, async ({ query }, { principal: { organizationId } }) => {
    const { after, limit, order } = query
    const from = query.from === undefined ? undefined : new Date(query.from)
    const to = query.to === undefined ? undefined : new Date(query.to)
    if (from && to && from > to) {
      const message = "'query.from' must not be later than to."
      throw new ApiError('invalid_parameter', message, { param: 'query.from' })
    }
    if (after !== undefined && !(await hasEvent(db, organizationId, after))) throw invalidCursor()
    const filters = {
      kind: query.type,
      policyId: query.policy_id,
      projectId: query.project_id,
      decision: query.decision,
      from,
      to,
    }
    const page = { after, limit, order }
    const { rows, hasMore } = await listEvents(db, organizationId, filters, page)
    return toPage(rows.map(presentEvent), hasMore)
  })
}
