import type { Event, EventHeader } from './event.ts'

type Value = EventHeader[string]
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

/**
 * JSON as RFC 8785 writes it: members in the order of their names by UTF-16 code units, which is how JavaScript compares
 * texts, no white space, and numbers and texts as ECMAScript prints them. What JSON cannot say exactly is refused.
 */
export function writeCanonical(value: Value | EventHeader): string {
  if (Array.isArray(value)) return `[${value.map((item) => writeCanonical(item)).join(',')}]`
  if (typeof value === 'object' && value !== null) return writeObject(value as EventHeader)
  if (typeof value === 'number' && !Number.isFinite(value)) throw notCanonical('a number', value)
  if (typeof value === 'string' && !value.isWellFormed()) {
    throw notCanonical('a text with half a character', value)
  }
  return JSON.stringify(value)
}

function writeObject(members: EventHeader): string {
  const sorted = Object.entries(members).toSorted(([one], [other]) => (one < other ? -1 : 1))
  const written = sorted.map(([name, value]) => `${writeCanonical(name)}:${writeCanonical(value)}`)
  return `{${written.join(',')}}`
}

const notCanonical = (what: string, value: unknown) =>
  new Error(`A record cannot contain ${what} such as ${JSON.stringify(value)}.`)
