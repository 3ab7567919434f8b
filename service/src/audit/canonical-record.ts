import { writeCanonical } from './canonical-json.ts'
import type { Event } from './event.ts'

type CanonicalEvent = Pick<
  Event,
  'id' | 'kind' | 'organizationId' | 'at' | 'header' | 'payloadHash'
>

/**
 * The one text of an event, whose hash is its leaf in the audit log: the JSON of its header with the members that every event has
 * and its number in the organization, written as RFC 8785 says. The payload is in it by its hash only, so that the text stays the
 * same when the payload is erased (docs/specification/audit-events.md#canonical-form).
 */
export function writeCanonicalRecord(event: CanonicalEvent, orgSeq: number): string {
  return writeCanonical({
    ...event.header,
    event_id: event.id,
    event_type: event.kind,
    org_id: event.organizationId,
    created_at: event.at.toISOString(),
    payload_hash: event.payloadHash.toString('hex'),
    org_seq: orgSeq,
  })
}
