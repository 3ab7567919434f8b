import { bytesFromHex } from './encoding.ts'
import { Fault } from './fault.ts'
import type { Keys } from './keys.ts'
import { frontierLength, rootOf } from './merkle.ts'
import { faultOfSignature, hashNote, idOfNote, type Note, parseNote } from './note.ts'
import type { CheckpointRecord } from './read-records.ts'

/** A checkpoint whose members, note and signature agree. Whether it is about our records is another question. */
export type Checkpoint = {
  size: number
  root: Buffer
  frontier: readonly Buffer[]
  /** Of its note. */
  hash: Buffer
  previous: Buffer | null
  keyId: number
  time: string
}

export const checkpointMembers = [
  'event_type',
  'event_id',
  'source',
  'created_at',
  'org_id',
  'org_seq',
  'root',
  'frontier',
  'key_id',
  'previous_hash',
  'note',
] as const

export function readCheckpoint(record: CheckpointRecord, keys: Keys): Checkpoint {
  const { members } = record
  const text = members['note']
  const note = typeof text === 'string' ? parseNote(text) : undefined
  if (!note || typeof text !== 'string') throw faultOf(record, 'has a note that cannot be read')
  const forged = faultOfSignature(note, keys)
  // A note that was signed says which checkpoint it is, whatever became of its other members.
  const named = forged === undefined ? { ...record, seq: note.size } : record
  const wrong = wrongMember(record, text, note)
  if (wrong) throw faultOf(named, `has been changed: ${wrong} is not what its note says`)
  if (forged) throw faultOf(record, forged)
  const frontier = frontierFrom(members['frontier'], note)
  if (!frontier) throw faultOf(record, 'has been changed: its frontier does not lead to its root')
  const { size, root, previous, keyId, time } = note
  return { size, root, frontier, hash: hashNote(text), previous, keyId, time }
}

const faultOf = ({ seq, eventId, place }: CheckpointRecord, what: string) =>
  new Fault({ kind: 'checkpoint', seq, eventId }, place, what)

/** The first member that says something else than the note, is missing, or is one too many. */
function wrongMember({ members }: CheckpointRecord, text: string, note: Note): string | undefined {
  const expected: Record<string, string | number | null> = {
    event_type: 'checkpoint',
    event_id: idOfNote(text),
    source: 'policy_gateway',
    created_at: note.time,
    org_id: note.organizationId,
    org_seq: note.size,
    root: note.root.toString('hex'),
    key_id: note.keyId,
    previous_hash: note.previous?.toString('hex') ?? null,
    note: text,
  }
  const different = Object.keys(expected).find((name) => members[name] !== expected[name])
  const known = new Set<string>(checkpointMembers)
  return different ?? Object.keys(members).find((name) => !known.has(name))
}

function frontierFrom(value: unknown, { size, root }: Note): Buffer[] | undefined {
  const frontier = frontierOf(value, size)
  return frontier && rootOf(frontier).equals(root) ? frontier : undefined
}

/** The roots of the complete subtrees of a tree of this size, from their hexadecimal form. */
export function frontierOf(value: unknown, size: number): Buffer[] | undefined {
  if (!Array.isArray(value) || value.length !== frontierLength(size)) return undefined
  const hashes = value.map((one) => bytesFromHex(one, 32))
  return hashes.every((one) => one !== undefined) ? hashes : undefined
}
