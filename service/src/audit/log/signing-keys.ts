import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'

import type { Keyring, MasterKey } from '#platform/secrets.ts'

/** A key that signs checkpoints. */
export type SigningKey = {
  readonly id: number
  readonly publicKey: Buffer
  sign(text: string): Buffer
}

/** The first one signs. The others have signed before: only their public keys are still needed. */
export type SigningKeys = readonly [SigningKey, ...SigningKey[]]

/** What stands before the 32 bytes of a seed in the DER encoding of an Ed25519 private key. */
const derPrefix = Buffer.from('302e020100300506032b657004220420', 'hex')

export const createSigningKeys = ([first, ...others]: Keyring): SigningKeys => [
  createSigningKey(first),
  ...others.map(createSigningKey),
]

export function createSigningKey({ version, bytes }: MasterKey): SigningKey {
  const key = createPrivateKey({
    key: Buffer.concat([derPrefix, bytes]),
    format: 'der',
    type: 'pkcs8',
  })
  return {
    id: version,
    publicKey: publicBytesOf(key),
    sign: (text) => sign(null, Buffer.from(text), key),
  }
}

const publicBytesOf = (key: KeyObject) =>
  createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32)
