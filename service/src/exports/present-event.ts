import type { AuditEvent } from '@gatehouse/contract/exports/audit-event'

import type { ListedEvent } from './event-list-store.ts'

/** An event as the API shows it: the members of its header beside those that every event has. */
export function presentEvent(event: ListedEvent): AuditEvent {
  const { id, kind, organizationId, at, header, payload, payloadHash } = event
  return {
    ...header,
    id,
    event_id: id,
    event_type: kind as AuditEvent['event_type'],
    source: 'policy_gateway',
    created_at: at.toISOString(),
    org_id: organizationId,
    payload: payload && (JSON.parse(payload.toString()) as Record<string, unknown>),
    payload_hash: payloadHash.toString('hex'),
  }
}
