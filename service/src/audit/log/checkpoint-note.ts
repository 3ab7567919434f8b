import { hash } from 'node:crypto'

import type { SigningKey } from './signing-keys.ts'

/** What a checkpoint says: the tree of an organization has this size and this root. */
export type Checkpoint = {
  organizationId: string
  size: number
  root: Buffer
  /** The hash of the organization's previous checkpoint. */
  previousHash: Buffer | null
  at: Date
}

/** The name of a key in signatures. */
export const keyNameOf = (id: number) => `gatehouse-audit-${id}`

const ed25519 = Buffer.from([1])

/** What a verifier recognises a key by: the first bytes of a hash over its name, its algorithm and its public key. */
function keyHashOf({ id, publicKey }: Pick<SigningKey, 'id' | 'publicKey'>): Buffer {
  const parts = [Buffer.from(`${keyNameOf(id)}\n`), ed25519, publicKey]
  return hash('sha256', Buffer.concat(parts), 'buffer').subarray(0, 4)
}

/** A key as the text that verifiers of signed notes take. */
export const verifierKeyOf = (key: Pick<SigningKey, 'id' | 'publicKey'>) =>
  [
    keyNameOf(key.id),
    keyHashOf(key).toString('hex'),
    Buffer.concat([ed25519, key.publicKey]).toString('base64'),
  ].join('+')

/** A checkpoint as a signed note (c2sp.org/signed-note, c2sp.org/tlog-checkpoint). */
export function writeNote(checkpoint: Checkpoint, key: SigningKey): string {
  const { organizationId, size, root, previousHash, at } = checkpoint
  const text = [
    `gatehouse-audit/${organizationId}`,
    String(size),
    root.toString('base64'),
    `previous ${previousHash?.toString('base64') ?? 'none'}`,
    `time ${at.toISOString()}`,
    '',
  ].join('\n')
  const signature = Buffer.concat([keyHashOf(key), key.sign(text)]).toString('base64')
  return `${text}\n— ${keyNameOf(key.id)} ${signature}\n`
}

export const hashNote = (note: string): Buffer => hash('sha256', note, 'buffer')
