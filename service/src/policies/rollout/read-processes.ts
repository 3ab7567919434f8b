import {
  type Processes,
  processesShown,
  readProcesses,
} from '@gatehouse/contract/organization/processes'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { toSeconds } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import { type ListedProcess, listProcesses } from './process-list-store.ts'

export function serveReadProcesses(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, readProcesses, async (_, { principal }): Promise<Processes> => {
    const rows = await listProcesses(db, principal.organizationId, processesShown)
    return {
      object: 'organization.processes',
      total: rows[0]?.total ?? 0,
      data: rows.map(present),
    }
  })
}

/** While a process is live, nothing here changes by itself: an answer that is polled stays the same. */
const present = (row: ListedProcess) => ({
  id: row.id,
  release: row.release,
  started_at: toSeconds(row.startedAt),
  last_seen_at: row.isLive ? null : toSeconds(row.seenAt),
  is_ready: row.isReady,
  is_counting_locally: row.countsLocally,
  policy_epoch: row.epoch,
  is_failed: row.isFailed,
})
