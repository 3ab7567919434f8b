import { isObject, type JsonObject } from '../canonical.ts'
import { type Checkpoint, readCheckpoint } from '../checkpoint.ts'
import { bytesFromHex } from '../encoding.ts'
import { BadLine, Fault } from '../fault.ts'
import type { Key, Keys } from '../keys.ts'
import { rootFrom } from '../merkle.ts'
import { type EventRecord, recordFrom } from '../read-records.ts'
import type { ProofFile } from './find-proof.ts'

type Options = {
  /** How messages name the file. */
  file: string
  keys: Keys
  organizationId: string | undefined
}

export type VerifiedProof = {
  event: JsonObject
  record: EventRecord
  checkpoint: Checkpoint
  key: Key
}

const proofMembers = ['checkpoint', 'event', 'hashes', 'leaf', 'org_seq']
const hashesMax = 64

/** Verifies that an event is, unchanged, in the log that a checkpoint has signed. Nothing in the file is taken on trust. */
export function verifyProof({ text, object }: ProofFile, options: Options): VerifiedProof {
  const { file, keys } = options
  const fault = (what: string) => new Fault({ kind: 'proof', seq: null }, { file, line: 0 }, what)
  if (hasRepeatedMember(text, object)) throw fault('has a member twice')
  if (Object.keys(object).toSorted(byName).join() !== proofMembers.join())
    throw fault(`has other members than ${new Intl.ListFormat('en').format(proofMembers)}`)
  const { event, leaf, hashes, org_seq: seq } = object
  const record = readEvent(event, file)
  if (!isObject(event) || seq !== record.seq) throw fault('has another org_seq than its event')
  if (!bytesFromHex(leaf, 32)?.equals(record.leaf))
    throw changed(record, 'has been changed: it does not match its leaf')
  const checkpoint = checkpointIn(object, options)
  const { organizationId } = record
  if (organizationId !== checkpoint.organizationId)
    throw changed(record, 'belongs to another organization than the checkpoint')
  if (options.organizationId !== undefined && organizationId !== options.organizationId)
    throw changed(
      record,
      `belongs to the organization ${organizationId}, not to ${options.organizationId}`,
    )
  const path = hashesIn(hashes)
  if (!path) throw fault('has no list of hashes that can be read')
  const { size, root, keyId } = checkpoint.read
  const found =
    record.seq <= size ? rootFrom(record.leaf, { index: record.seq - 1, size }, path) : undefined
  if (!found?.equals(root))
    throw changed(
      record,
      `is not in the log that the checkpoint of size ${size} has signed: the hashes do not lead to its root`,
    )
  const key = keys.get(keyId)
  if (!key) throw fault(`is signed with the key ${keyId}, which is not among the known keys`)
  return { event, record, checkpoint: checkpoint.read, key }
}

const changed = ({ seq, eventId, place }: EventRecord, what: string) =>
  new Fault({ kind: 'record', seq, eventId }, place, what)

function readEvent(event: unknown, file: string): EventRecord {
  const place = { file, line: 0 }
  try {
    const record = isObject(event) ? recordFrom(event, place) : undefined
    if (record?.kind === 'record') return record
  } catch (error) {
    if (!(error instanceof BadLine)) throw error
    const { org_seq: seq, event_id: id } = isObject(event) ? event : {}
    const named = {
      seq: typeof seq === 'number' ? seq : null,
      eventId: typeof id === 'string' ? id : undefined,
    }
    throw new Fault({ kind: 'record', ...named }, place, error.message)
  }
  throw new Fault({ kind: 'proof', seq: null }, place, 'has no event')
}

/** The API adds two members, which say what a list of checkpoints needs. */
function checkpointIn({ checkpoint }: JsonObject, { file, keys }: Options) {
  const { id, object, ...members } = isObject(checkpoint) ? checkpoint : {}
  const { org_seq: seq, org_id: organizationId, event_id: eventId } = members
  const subject = { kind: 'checkpoint', seq: typeof seq === 'number' ? seq : null } as const
  const place = { file, line: 0 }
  if (typeof seq !== 'number' || id !== String(seq) || object !== 'organization.audit_checkpoint')
    throw new Fault(
      subject,
      place,
      'has been changed: its id or its object is not that of a checkpoint',
    )
  const record = {
    kind: 'checkpoint' as const,
    place,
    organizationId: typeof organizationId === 'string' ? organizationId : '',
    seq,
    eventId: typeof eventId === 'string' ? eventId : undefined,
    members,
  }
  return { organizationId: record.organizationId, read: readCheckpoint(record, keys) }
}

function hashesIn(value: unknown): Buffer[] | undefined {
  if (!Array.isArray(value) || value.length > hashesMax) return undefined
  const hashes = value.map((one) => bytesFromHex(one, 32))
  return hashes.every((one) => one !== undefined) ? hashes : undefined
}

const byName = (one: string, other: string) => (one < other ? -1 : 1)

/**
 * A member that is there twice would be read as its last value here, and as its first elsewhere. The file may have any layout
 * and any spelling of texts and numbers, so both sides are written the same way before they are compared.
 */
function hasRepeatedMember(text: string, object: JsonObject): boolean {
  const token = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|\s+/g
  const plain = text.replaceAll(token, (part) =>
    part.trim() === '' ? '' : JSON.stringify(JSON.parse(part)),
  )
  return plain !== JSON.stringify(object)
}
