import { hash } from 'node:crypto'

import { bytesFromBase64 } from './encoding.ts'
import { keyHashOf, type Keys, nameOfKey } from './keys.ts'

/** A checkpoint as it was signed: a C2SP signed note that holds a tlog-checkpoint. */
export type Note = {
  organizationId: string
  size: number
  root: Buffer
  /** SHA-256 of the previous note; null for the first. */
  previous: Buffer | null
  time: string
  keyId: number
  signed: string
  keyHash: Buffer
  signature: Buffer
}

const form =
  /^(gatehouse-audit\/(\S+)\n([1-9]\d{0,15})\n([\w+/]{43}=)\nprevious (none|[\w+/]{43}=)\ntime (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\n)\n— gatehouse-audit-([1-9]\d{0,9}) ([\w+/]{91}=)\n$/

/** There is one way to write a note: anything else is undefined, so that every byte counts. */
export function parseNote(text: string): Note | undefined {
  const [, signed = '', organizationId = '', size, root, previous, time = '', keyId, signature] =
    form.exec(text) ?? []
  const rootBytes = bytesFromBase64(root, 32)
  const previousBytes = previous === 'none' ? null : bytesFromBase64(previous, 32)
  const signatureBytes = bytesFromBase64(signature, 68)
  if (!rootBytes || previousBytes === undefined || !signatureBytes) return undefined
  return {
    organizationId,
    size: Number(size),
    root: rootBytes,
    previous: previousBytes,
    time,
    keyId: Number(keyId),
    signed,
    keyHash: signatureBytes.subarray(0, 4),
    signature: signatureBytes.subarray(4),
  }
}

/** What is wrong with the signature, as the end of a sentence; undefined if nothing is. */
export function faultOfSignature(
  { keyId, signed, keyHash, signature }: Note,
  keys: Keys,
): string | undefined {
  const key = keys.get(keyId)
  if (!key) return `is signed with the key ${nameOfKey(keyId)}, which is not among the known keys`
  if (!keyHashOf(key).equals(keyHash))
    return `is signed with another key than the known ${nameOfKey(keyId)}`
  if (!key.verifies(signed, signature))
    return `has a signature that key ${nameOfKey(keyId)} did not make`
  return undefined
}

/** The next checkpoint repeats it. */
export const hashNote = (text: string): Buffer => hash('sha256', text, 'buffer')

/** The event id of a checkpoint: a UUID of version 8 (RFC 9562) from the hash of its note. */
export function idOfNote(text: string): string {
  const bytes = Buffer.from(hashNote(text).subarray(0, 16))
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
