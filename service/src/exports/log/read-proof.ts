import { readAuditProof } from '@gatehouse/contract/exports/audit-log'
import type { FastifyInstance } from 'fastify'

import { proveInclusion } from '#audit/log/prove-inclusion.ts'
import { bind } from '#http/bind.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Db } from '#platform/database.ts'

import { findCovering } from './checkpoint-list-store.ts'
import { findOrgSeq, listEntries } from './entry-store.ts'
import { hasEvent } from './event-list-store.ts'
import { listedCheckpoint } from './list-records.ts'
import { presentRecord } from './present-record.ts'

export function serveReadAuditProof(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, readAuditProof, async ({ params }, { principal: { organizationId } }) => {
    if (!(await hasEvent(db, organizationId, params.event_id))) throw eventNotFound()
    const orgSeq = await findOrgSeq(db, organizationId, params.event_id)
    if (orgSeq === undefined) throw notReady()
    const covering = await findCovering(db, organizationId, orgSeq)
    if (!covering) throw notReady()
    const { checkpoint, tiledSize } = covering
    const { rows } = await listEntries(db, organizationId, { after: orgSeq - 1, limit: 1 })
    const [entry] = rows
    if (!entry?.event) throw eventNotFound()
    const tree = { size: checkpoint.size, tiledSize }
    const hashes = await proveInclusion(db, organizationId, orgSeq, tree)
    return {
      event: presentRecord(entry.event),
      org_seq: orgSeq,
      leaf: entry.event.leaf.toString('hex'),
      hashes: hashes.map((each) => each.toString('hex')),
      checkpoint: listedCheckpoint(checkpoint),
    }
  })
}

const eventNotFound = () =>
  new ApiError('audit_event_not_found', 'The organization has no audit event with this id.')

const notReady = () =>
  new ApiError(
    'proof_not_ready',
    'No checkpoint covers this event yet; checkpoints are signed once a minute, so try again later.',
  )
