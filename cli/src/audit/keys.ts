import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto'

import { UsageError } from '../usage-error.ts'
import { isObject } from './canonical.ts'
import { bytesFromBase64, isSize } from './encoding.ts'

/** A key that signs checkpoints. */
export type Key = {
  id: number
  publicKey: Buffer
  verifies: (text: string, signature: Buffer) => boolean
}
export type Keys = ReadonlyMap<number, Key>

/** How DER (RFC 8410) begins for an Ed25519 public key; the 32 bytes of the key follow. */
const derPrefix = Buffer.from('302a300506032b6570032100', 'hex')

export function createKey(id: number, publicKey: Buffer): Key {
  let key: KeyObject | undefined
  return {
    id,
    publicKey,
    verifies(text, signature) {
      const der = Buffer.concat([derPrefix, publicKey])
      key ??= createPublicKey({ key: der, format: 'der', type: 'spki' })
      return verify(null, Buffer.from(text), key, signature)
    },
  }
}

export const publicKeyFrom = (value: unknown) => bytesFromBase64(value, 32)

/** What people compare to recognise a key. */
export const fingerprintOf = ({ publicKey }: Key) => hash('sha256', publicKey, 'hex')

export const nameOfKey = (id: number) => `gatehouse-audit-${id}`

/** The four bytes by which a signed note names its key. */
export const keyHashOf = ({ id, publicKey }: Key): Buffer =>
  hash(
    'sha256',
    Buffer.concat([Buffer.from(`${nameOfKey(id)}\n\x01`), publicKey]),
    'buffer',
  ).subarray(0, 4)

/** The keys of a file as /.well-known/gatehouse-audit-keys.json has them. */
export function readKeys(text: string): Keys {
  const keys = listIn(text).map(keyFrom)
  const byId = new Map(keys.map((key) => [key.id, key]))
  if (keys.length === 0) throw new UsageError('The file named by --keys contains no keys.')
  if (byId.size < keys.length)
    throw new UsageError('The file named by --keys has two keys with the same id.')
  return byId
}

function listIn(text: string): readonly unknown[] {
  const parsed = parseJson(text)
  const keys: unknown = isObject(parsed) ? parsed['keys'] : undefined
  if (Array.isArray(keys)) return keys
  throw new UsageError(
    'The file named by --keys is not the JSON of /.well-known/gatehouse-audit-keys.json.',
  )
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** Says the same thing in several ways, which must agree: somebody may have edited one of them. */
function keyFrom(value: unknown): Key {
  const { id, name, algorithm, public_key, verifier_key } = isObject(value) ? value : {}
  const publicKey = publicKeyFrom(public_key)
  if (!isSize(id) || !publicKey)
    throw new UsageError('A key in the file named by --keys cannot be read.')
  const key = createKey(id, publicKey)
  const isConsistent =
    name === nameOfKey(id) && algorithm === 'Ed25519' && verifier_key === verifierKeyOf(key)
  if (!isConsistent)
    throw new UsageError(
      `The members of key ${id} in the file named by --keys contradict each other.`,
    )
  return key
}

function verifierKeyOf(key: Key): string {
  const encoded = Buffer.concat([Buffer.from([1]), key.publicKey]).toString('base64')
  return `${nameOfKey(key.id)}+${keyHashOf(key).toString('hex')}+${encoded}`
}
