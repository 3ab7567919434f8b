import {
  type AuditCheckpoint,
  type LogEntry,
  listAuditCheckpoints,
  listAuditRecords,
} from '@gatehouse/contract/exports/audit-log'
import { pageOf, toPage } from '@gatehouse/contract/list'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import type { Db } from '#platform/database.ts'

import { listCheckpoints, type ListedCheckpoint } from './checkpoint-list-store.ts'
import { listEntries, type NumberedEvent } from './entry-store.ts'
import { presentCheckpoint, presentRecord } from './present-record.ts'

export function serveListAuditRecords(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listAuditRecords, async ({ query }, { principal: { organizationId } }) => {
    const { after, limit } = query
    const range = { after, isKept: true, limit }
    const { rows, hasMore } = await listEntries(db, organizationId, range)
    const events = rows.flatMap(({ event }) => event ?? [])
    return toPage(events.map(presentEntry), hasMore)
  })
}

const presentEntry = (event: NumberedEvent): LogEntry => ({
  id: String(event.orgSeq),
  leaf: event.leaf.toString('hex'),
  record: presentRecord(event),
})

export function serveListAuditCheckpoints(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listAuditCheckpoints, async ({ query }, { principal: { organizationId } }) => {
    const { after, limit, order } = query
    const checkpoints = await listCheckpoints(db, organizationId, { after, limit, order })
    return pageOf(checkpoints.map(listedCheckpoint), limit)
  })
}

export const listedCheckpoint = (checkpoint: ListedCheckpoint): AuditCheckpoint => ({
  id: String(checkpoint.size),
  object: 'organization.audit_checkpoint',
  ...presentCheckpoint(checkpoint),
})
