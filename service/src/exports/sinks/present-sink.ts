import type { DeadLetter, ExportSink } from '@gatehouse/contract/exports/export-sink'

import { momentOfUuid } from '#platform/id.ts'

import type { DeadLetterRow } from './dead-letter-store.ts'
import type { SinkWithDelivery } from './sink-store.ts'
import { inSchemaOrder, type Sink } from './sink.ts'

/** RFC 3339 to the second. */
const toSecond = (moment: Date) => `${moment.toISOString().slice(0, 19)}Z`
const toSecondOrNull = (moment: Date | null) => moment && toSecond(moment)

/** What the audit events of a change show: the sink, and not how its delivery goes. */
export const asResource = (sink: Sink) => ({
  id: sink.id,
  object: 'policy_gateway.export' as const,
  type: sink.type,
  label: sink.label,
  enabled: sink.enabled,
  config: { ...inSchemaOrder(sink) },
  managed_by: sink.managedBy,
  created_at: toSecond(sink.createdAt),
  updated_at: toSecond(sink.updatedAt),
})

export const presentSink = (sink: SinkWithDelivery, now: Date): ExportSink => ({
  ...asResource(sink),
  last_success_at: toSecondOrNull(sink.lastSuccessAt),
  last_error_at: toSecondOrNull(sink.lastErrorAt),
  last_error: sink.lastError?.slice(0, 500) ?? null,
  state: sink.state,
  lag_seconds: sink.oldestEventId === null ? 0 : ageInSeconds(sink.oldestEventId, now),
  pending_events: sink.pendingEvents,
  dead_letters: sink.deadLetters,
})

export function ageInSeconds(eventId: string, now: Date): number {
  const at = momentOfUuid(eventId) ?? now
  return Math.max(0, Math.floor((now.getTime() - at.getTime()) / 1000))
}

export const presentDeadLetter = (row: DeadLetterRow): DeadLetter => ({
  id: row.eventId,
  object: 'policy_gateway.export.dead_letter',
  event_id: row.eventId,
  org_seq: row.orgSeq,
  error: row.error,
  attempts: row.attempts,
  created_at: toSecond(row.createdAt),
})
