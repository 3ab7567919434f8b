import { hash } from 'node:crypto'

import type { AuditEvent } from '@gatehouse/contract/exports/audit-event'
import type { AuditCheckpoint, AuditRecord } from '@gatehouse/contract/exports/audit-log'

import { splitHashes } from '#audit/log/merkle.ts'

import type { ListedCheckpoint } from './checkpoint-list-store.ts'
import type { NumberedEvent } from './entry-store.ts'
import type { ListedEvent } from './event-list-store.ts'

const source = 'policy_gateway' as const

/** The members of the header beside those that every event has. */
const membersOf = ({ header, payload, ...event }: ListedEvent) => ({
  ...header,
  event_id: event.id,
  event_type: event.kind,
  source,
  created_at: event.at.toISOString(),
  org_id: event.organizationId,
  payload: payload && (JSON.parse(payload.toString()) as Record<string, unknown>),
  payload_hash: event.payloadHash.toString('hex'),
})

/** An event as the list of events shows it. */
export const presentEvent = (event: ListedEvent): AuditEvent => ({
  ...membersOf(event),
  event_type: event.kind as AuditEvent['event_type'],
  id: event.id,
})

/** An event as destinations get it: with these members its leaf, and so its place in the log, can be computed again. */
export const presentRecord = (event: NumberedEvent): AuditRecord => ({
  ...membersOf(event),
  org_seq: event.orgSeq,
  payload_salt: event.salt && event.salt.toString('hex'),
})

type CheckpointRecord = Omit<AuditCheckpoint, 'id' | 'object'>

/** A checkpoint as destinations get it. */
export function presentCheckpoint(checkpoint: ListedCheckpoint): CheckpointRecord {
  const { organizationId, size, root, frontier, keyId, note, at } = checkpoint
  return {
    event_id: idOfNote(note),
    event_type: 'checkpoint',
    source,
    created_at: at.toISOString(),
    org_id: organizationId,
    org_seq: size,
    root: root.toString('hex'),
    frontier: splitHashes(frontier).map((each) => each.toString('hex')),
    key_id: keyId,
    previous_hash: readPreviousHash(note),
    note,
  }
}

/** A UUID of version 8, so that a destination that gets a checkpoint twice recognises it. */
function idOfNote(note: string): string {
  const bytes = hash('sha256', note, 'buffer').subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

function readPreviousHash(note: string): string | null {
  const [, text = 'none'] = /^previous (\S+)$/m.exec(note) ?? []
  return text === 'none' ? null : Buffer.from(text, 'base64').toString('hex')
}
