import { pageOf } from '@gatehouse/contract/list'
import { GivenGatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import { type HistoryEntry, listGatewayHistory } from '@gatehouse/contract/policy-gateway/gateway'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { invalidCursor } from '#http/read-page.ts'
import type { Db } from '#platform/database.ts'

import { findPlace, type HistoryRow, listEntries } from './history-store.ts'
import { toSeconds } from './saved-config.ts'

export function serveListGatewayHistory(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listGatewayHistory, async ({ query }, { principal: { organizationId } }) => {
    const { after, limit, order } = query
    const place = after === undefined ? undefined : await findPlace(db, organizationId, after)
    if (after !== undefined && place === undefined) throw invalidCursor()
    const rows = await listEntries(db, organizationId, { after: place, limit, order })
    return pageOf(rows.map(present), limit)
  })
}

function present({ id, kind, revision, actor, content, created_at }: HistoryRow): HistoryEntry {
  const entry = {
    id,
    object: 'policy_gateway.history_entry' as const,
    created_at: toSeconds(created_at),
    actor,
  }
  if (kind === 'simulation') return { ...entry, kind, ...(content as SimulationContent) }
  return { ...entry, kind, revision: revision ?? 0, config: GivenGatewayConfig.parse(content) }
}

/** What the history keeps of a simulation. */
export type SimulationContent = Omit<
  Extract<HistoryEntry, { kind: 'simulation' }>,
  'id' | 'object' | 'created_at' | 'actor' | 'kind'
>
