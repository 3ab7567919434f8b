import type { FastifyInstance } from 'fastify'

import type { Db } from '#platform/database.ts'

import { serveListAuditEvents } from './list-events.ts'
import { serveListAuditCheckpoints, serveListAuditRecords } from './list-records.ts'
import { serveReadAuditHistogram } from './read-histogram.ts'
import { serveReadAuditProof } from './read-proof.ts'

/** The endpoints of the audit log: events, the numbered log, checkpoints and proofs. */
export function serveAuditLog(app: FastifyInstance, deps: { db: Db }) {
  serveListAuditEvents(app, deps)
  serveReadAuditHistogram(app, deps)
  serveListAuditRecords(app, deps)
  serveListAuditCheckpoints(app, deps)
  serveReadAuditProof(app, deps)
}
