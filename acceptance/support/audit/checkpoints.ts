import { createHash, createPublicKey, verify } from 'node:crypto'

import { hashText, type Members, rootsAt } from './tree.ts'

// Checks checkpoints as an auditor would who has the records and the published keys, and nothing of ours.

export type PublishedKey = { id: number; public_key: string }

const form =
  /^(gatehouse-audit\/(\S+)\n(\d+)\n(\S+)\nprevious (\S+)\ntime \S+\n)\n— (gatehouse-audit-(\d+)) (\S+)\n$/

/** What is wrong with the checkpoints of an organization, which are in the order of their arrival. */
export function findFalseCheckpoints(
  organizationId: string,
  checkpoints: readonly Members[],
  leaves: Buffer,
  keys: readonly PublishedKey[],
): string[] {
  const roots = rootsAt(
    leaves,
    checkpoints.map(({ org_seq }) => Number(org_seq)),
  )
  return checkpoints.flatMap((checkpoint, at) => {
    const size = Number(checkpoint['org_seq'])
    const note = String(checkpoint['note'])
    const [, text = '', itsOrganization, itsSize, root64 = '', previous = ''] =
      form.exec(note) ?? []
    const computed = roots.get(size)
    const root = Buffer.from(root64, 'base64').toString('hex')
    const previousHash =
      previous === 'none' ? null : Buffer.from(previous, 'base64').toString('hex')
    const before = checkpoints[at - 1]
    return [
      text === '' && 'the note has another form',
      itsOrganization !== organizationId && 'the note is of another organization',
      Number(itsSize) !== size && 'the note has another size',
      root !== computed?.root && 'the note has another root',
      checkpoint['root'] !== computed?.root && 'the record has another root',
      JSON.stringify(checkpoint['frontier']) !== JSON.stringify(computed?.frontier) &&
        'the record has another frontier',
      checkpoint['previous_hash'] !== previousHash && 'the record has another previous hash',
      before && previousHash !== hashText(String(before['note'])) && 'the chain is broken',
      !isSigned(note, keys) && 'the signature is not valid',
    ]
      .filter((finding) => typeof finding === 'string')
      .map((finding) => `${organizationId}, checkpoint ${size}: ${finding}`)
  })
}

function isSigned(note: string, keys: readonly PublishedKey[]): boolean {
  const [, text = '', , , , , name = '', keyId, signature64 = ''] = form.exec(note) ?? []
  const key = keys.find(({ id }) => id === Number(keyId))
  if (!key) return false
  const raw = Buffer.from(key.public_key, 'base64')
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') }
  const signature = Buffer.from(signature64, 'base64')
  const hint = createHash('sha256').update(`${name}\n`).update(Buffer.of(1)).update(raw).digest()
  return (
    signature.subarray(0, 4).equals(hint.subarray(0, 4)) &&
    verify(
      null,
      Buffer.from(text),
      createPublicKey({ key: jwk, format: 'jwk' }),
      signature.subarray(4),
    )
  )
}
