import { setImmediate as nextTurn } from 'node:timers/promises'

import { toPage } from '@gatehouse/contract/list'
import { GivenGatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import { type HistoryEntry, listGatewayHistory } from '@gatehouse/contract/policy-gateway/gateway'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { invalidCursor } from '#http/read-page.ts'
import type { Db } from '#platform/database.ts'

import { findPlace, type HistoryRow, listHistoryEntries } from './history-store.ts'
import { toSecondText } from './saved-config.ts'

export function serveListGatewayHistory(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listGatewayHistory, async ({ query }, { principal: { organizationId } }) => {
    const { after, limit, order } = query
    const place = after === undefined ? undefined : await findPlace(db, organizationId, after)
    if (after !== undefined && place === undefined) throw invalidCursor()
    const page = { after: place, limit, order }
    const { rows, hasMore } = await listHistoryEntries(db, organizationId, page)
    return toPage(await presentInSteps(rows), hasMore)
  })
}

/** To check a large configuration takes long enough for others to wait, so each has a turn of the event loop. */
async function presentInSteps(rows: readonly HistoryRow[]): Promise<HistoryEntry[]> {
  const entries: HistoryEntry[] = []
  for (const row of rows) {
    entries.push(present(row))
    await nextTurn()
  }
  return entries
}

function present({ id, kind, revision, actor, content, created_at }: HistoryRow): HistoryEntry {
  const entry = {
    id,
    object: 'policy_gateway.history_entry' as const,
    created_at: toSecondText(created_at),
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
