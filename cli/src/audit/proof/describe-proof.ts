import { aligned, withoutControls } from '../../output/text-columns.ts'
import { fingerprintOf } from '../keys.ts'
import type { VerifiedProof } from './verify-proof.ts'

/** What was verified, for a person and for a program. */
export function describeProof({ event, record, checkpoint, key }: VerifiedProof) {
  const { organizationId, seq, eventId, createdAt, isErased } = record
  const kind = ['event_type', 'action', 'decision'].map((name) => event[name])
  const about = (['policy_id', 'project_id', 'model'] as const).flatMap((name) => {
    const value = event[name]
    return isText(value) ? [[name.replace('_id', ''), value]] : []
  })
  const rows = [
    ['event', `${eventId}: ${kind.filter(isText).join(', ')}`],
    ['created', createdAt],
    ...(isText(event['actor']) ? [['actor', actorOf(event['actor'], event['actor_type'])]] : []),
    ...about,
    ['payload', isErased ? 'erased; nothing shows any more what it was' : 'as it was recorded'],
    ['checkpoint', `of size ${checkpoint.size}, signed at ${checkpoint.time}`],
    [`key ${key.id}`, `SHA-256 ${fingerprintOf(key)}`],
  ]
  const headline = `Verified: record ${seq} of organization ${organizationId} is in the signed log, unchanged.`
  const lines = [headline, '', ...aligned(rows).map((line) => `  ${line}`)]
  const json = {
    verified: true,
    org_id: organizationId,
    org_seq: seq,
    event_id: eventId,
    created_at: createdAt,
    erased_payload: isErased,
    checkpoint: { size: checkpoint.size, created_at: checkpoint.time },
    key: { id: key.id, fingerprint: fingerprintOf(key) },
  }
  return { text: `${lines.map(withoutControls).join('\n')}\n`, json }
}

const actorOf = (actor: string, type: unknown) =>
  isText(type) && type !== actor ? `${actor} (${type})` : actor

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
