import { listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import { toPage } from '@gatehouse/contract/list'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { invalidCursor } from '#http/read-page.ts'
import type { Db } from '#platform/database.ts'

import { hasEvent, listEvents } from './event-list-store.ts'
import { presentEvent } from './present-record.ts'
import { readFilters, readRange } from './read-filters.ts'

export function serveListAuditEvents(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listAuditEvents, async ({ query }, { principal: { organizationId } }) => {
    const { after, limit, order } = query
    const range = readRange({ from: query.from, to: query.to })
    if (after !== undefined && !(await hasEvent(db, organizationId, after))) throw invalidCursor()
    const filters = { ...readFilters(query), ...range }
    const page = { after, limit, order }
    const { rows, hasMore } = await listEvents(db, organizationId, filters, page)
    return toPage(rows.map(presentEvent), hasMore)
  })
}
