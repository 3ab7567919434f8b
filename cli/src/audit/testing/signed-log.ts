import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'

// Makes audit logs from the definitions alone: the tree is that of RFC 6962, section 2.1, as it is written there. Nothing here
// is shared with what verifies them.

const sha256 = (...parts: (Buffer | string)[]) => {
  const digest = createHash('sha256')
  for (const part of parts) digest.update(part)
  return digest.digest()
}

/** MTH of RFC 6962, over the hashes of the leaves. */
export function treeHash(leaves: readonly Buffer[]): Buffer {
  const [only] = leaves
  if (only === undefined) return sha256('')
  if (leaves.length === 1) return only
  let split = 1
  while (split * 2 < leaves.length) split *= 2
  return sha256('\x01', treeHash(leaves.slice(0, split)), treeHash(leaves.slice(split)))
}

/** The roots of the complete subtrees: the largest power of two that fits, and the same for the rest. */
export function completeSubtrees(leaves: readonly Buffer[]): Buffer[] {
  if (leaves.length === 0) return []
  let size = 1
  while (size * 2 <= leaves.length) size *= 2
  return [treeHash(leaves.slice(0, size)), ...completeSubtrees(leaves.slice(size))]
}

type Value = unknown
export type Members = Record<string, Value>

export function canonical(value: Value): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([name, one]) => `${JSON.stringify(name)}:${canonical(one)}`).join(',')}}`
}

/** A record in a bundle: the payload keeps the order in which it was hashed. */
function recordText(record: Members): string {
  const names = Object.keys(record).toSorted()
  const texts = names.map((name) => {
    const text = name === 'payload' ? JSON.stringify(record[name]) : canonical(record[name])
    return `${JSON.stringify(name)}:${text}`
  })
  return `{${texts.join(',')}}`
}

export function leafOf({ source: _, payload: __, payload_salt: ___, ...covered }: Members): Buffer {
  return sha256('\0', canonical(covered))
}

export type Signer = { id: number; privateKey: KeyObject; publicKey: Buffer }

export function createSigner(id: number): Signer {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  return {
    id,
    privateKey,
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).subarray(-32),
  }
}

const keyHash = ({ id, publicKey }: Signer) =>
  sha256(`gatehouse-audit-${id}\n\x01`, publicKey).subarray(0, 4)

/** What /.well-known/gatehouse-audit-keys.json has. */
export const keysDocument = (signers: readonly Signer[]) => ({
  keys: signers.map((signer) => ({
    id: signer.id,
    name: `gatehouse-audit-${signer.id}`,
    algorithm: 'Ed25519',
    public_key: signer.publicKey.toString('base64'),
    verifier_key: `gatehouse-audit-${signer.id}+${keyHash(signer).toString('hex')}+${Buffer.concat([Buffer.from([1]), signer.publicKey]).toString('base64')}`,
    created_at: '2026-01-01T00:00:00.000Z',
    retired_at: null,
  })),
})

const timeOf = (seq: number) => new Date(Date.UTC(2026, 0, 1) + seq * 1000).toISOString()

export function createRecord(organizationId: string, seq: number, isErased = false): Members {
  const payload = { usage: { tokens: seq, note: 'größer "als" \\ 1' }, before: null, after: [seq] }
  const salt = sha256(`salt ${organizationId} ${seq}`).subarray(0, 16)
  return {
    action: 'updated',
    actor: 'key_1',
    matches: [{ policy_id: 'pol_1', score: 0.25 }],
    event_id: randomUUID(),
    event_type: seq % 3 === 0 ? 'revision' : 'enforcement',
    source: 'policy_gateway',
    created_at: timeOf(seq),
    org_id: organizationId,
    org_seq: seq,
    payload: isErased ? null : payload,
    payload_hash: sha256(salt, JSON.stringify(payload)).toString('hex'),
    payload_salt: isErased ? null : salt.toString('hex'),
  }
}

type State = { size: number; root: Buffer; frontier: readonly Buffer[] }

/** A checkpoint about a tree. */
export function createCheckpoint(
  organizationId: string,
  { size, root, frontier }: State,
  { signer, previous }: { signer: Signer; previous: string | null },
): Members {
  const previousHash = previous === null ? null : sha256(previous)
  const time = timeOf(size)
  const said = previousHash?.toString('base64') ?? 'none'
  const text = `gatehouse-audit/${organizationId}\n${size}\n${root.toString('base64')}\nprevious ${said}\ntime ${time}\n`
  const signature = Buffer.concat([
    keyHash(signer),
    sign(null, Buffer.from(text), signer.privateKey),
  ])
  const note = `${text}\n— gatehouse-audit-${signer.id} ${signature.toString('base64')}\n`
  const id = sha256(note).subarray(0, 16)
  id.writeUInt8((id.readUInt8(6) % 16) + 0x80, 6)
  id.writeUInt8((id.readUInt8(8) % 64) + 0x80, 8)
  const hex = id.toString('hex')
  return {
    event_type: 'checkpoint',
    event_id: [
      hex.slice(0, 8),
      hex.slice(8, 12),
      hex.slice(12, 16),
      hex.slice(16, 20),
      hex.slice(20),
    ].join('-'),
    source: 'policy_gateway',
    created_at: time,
    org_id: organizationId,
    org_seq: size,
    root: root.toString('hex'),
    frontier: frontier.map((one) => one.toString('hex')),
    key_id: signer.id,
    previous_hash: previousHash?.toString('hex') ?? null,
    note,
  }
}

export type Log = {
  organizationId: string
  records: Members[]
  checkpoints: Members[]
  signers: Signer[]
}

/** Signs records at these sizes, each with the next of the signers. */
export function signLog(records: Members[], sizes: readonly number[], signers: Signer[]): Log {
  const organizationId = String(records[0]?.['org_id'])
  const leaves = records.map(leafOf)
  const checkpoints: Members[] = []
  for (const [index, size] of sizes.entries()) {
    const signer = signers[index % signers.length] as Signer
    const previous = (checkpoints.at(-1)?.['note'] as string | undefined) ?? null
    const signed = leaves.slice(0, size)
    const state = { size, root: treeHash(signed), frontier: completeSubtrees(signed) }
    checkpoints.push(createCheckpoint(organizationId, state, { signer, previous }))
  }
  const used = signers.slice(0, sizes.length)
  return { organizationId, records, checkpoints, signers: used }
}

export const createLog = (organizationId: string, sizes: readonly number[], signers: Signer[]) => {
  const count = sizes.at(-1) ?? 0
  const records = Array.from({ length: count }, (_, index) =>
    createRecord(organizationId, index + 1, index % 10 === 9),
  )
  return signLog(records, sizes, signers)
}

export const wrappedLine = (record: Members, leaf = leafOf(record)) =>
  `{"leaf":"${leaf.toString('hex')}","record":${recordText(record)}}`

export type BundleLine = { kind: 'header' | 'record' | 'checkpoint'; seq: number; text: string }

/** The lines of a bundle, and what each is. */
export function bundleLines(
  { organizationId, records, checkpoints, signers }: Log,
  from = 0,
): BundleLine[] {
  const start = checkpoints.find((one) => one['org_seq'] === from)
  const included = checkpoints.filter((one) => (one['org_seq'] as number) >= from)
  const used = new Set(included.map((one) => one['key_id']))
  const header = {
    format: 'gatehouse-audit-bundle/1',
    frontier: start?.['frontier'] ?? [],
    from,
    keys: signers
      .filter(({ id }) => used.has(id))
      .map(({ id, publicKey }) => ({ id, public_key: publicKey.toString('base64') })),
    org_id: organizationId,
    to: checkpoints.at(-1)?.['org_seq'],
  }
  const lineOf = (one: Members): BundleLine => ({
    kind: 'checkpoint',
    seq: one['org_seq'] as number,
    text: canonical(one),
  })
  const lines: BundleLine[] = [
    { kind: 'header', seq: 0, text: canonical(header) },
    ...(start ? [lineOf(start)] : []),
  ]
  for (const record of records.slice(from)) {
    const seq = record['org_seq'] as number
    lines.push({ kind: 'record', seq, text: wrappedLine(record) })
    lines.push(...included.filter((one) => one['org_seq'] === seq).map(lineOf))
  }
  return lines
}

export const bundleText = (lines: readonly { text: string }[]) =>
  lines.map(({ text }) => `${text}\n`).join('')
