import { createHash } from 'node:crypto'

// The Merkle tree of an organization's records, as the documentation describes it. It shares no code with the service.

export type Members = Record<string, unknown>

const sha256 = (...parts: (Buffer | string)[]): Buffer => {
  const digest = createHash('sha256')
  for (const part of parts) digest.update(part)
  return digest.digest()
}

/** What a record has besides its leaf, and what Elasticsearch and Azure get in addition. */
const outsideOfLeaf = new Set(['source', 'payload', 'payload_salt', '@timestamp', 'TimeGenerated'])

const leafPrefix = Buffer.of(0)
const nodePrefix = Buffer.of(1)

export function leafOf(record: Members): Buffer {
  const names = Object.keys(record).filter((name) => !outsideOfLeaf.has(name))
  return sha256(leafPrefix, writeMembers(record, names))
}

const writeMembers = (members: Members, names: string[]): string =>
  `{${names
    .sort()
    .map((name) => `${JSON.stringify(name)}:${writeValue(members[name])}`)
    .join(',')}}`

function writeValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeValue).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  return writeMembers(value as Members, Object.keys(value))
}

/** Whether the payload of a record is the one that its hash was made from. */
export function hasItsPayload({ payload, payload_salt, payload_hash }: Members): boolean {
  const salt = Buffer.from(String(payload_salt), 'hex')
  return sha256(salt, JSON.stringify(payload)).toString('hex') === payload_hash
}

export const hashText = (text: string): string => sha256(text).toString('hex')

type Root = { root: string; frontier: string[] }

/** The root of the tree at each of these sizes. `leaves` are hashes that lie side by side. */
export function rootsAt(leaves: Buffer, sizes: Iterable<number>): Map<number, Root> {
  const wanted = new Set(sizes)
  const roots = new Map<number, Root>()
  const complete: { hash: Buffer; leaves: number }[] = []
  for (let size = 1; size <= leaves.length / 32; size++) {
    let added = { hash: leaves.subarray((size - 1) * 32, size * 32), leaves: 1 }
    for (let left = complete.at(-1); left?.leaves === added.leaves; left = complete.at(-1)) {
      complete.pop()
      added = { hash: sha256(nodePrefix, left.hash, added.hash), leaves: 2 * left.leaves }
    }
    complete.push(added)
    if (!wanted.has(size)) continue
    const hashes = complete.map(({ hash }) => hash)
    const root = hashes.reduceRight((right, left) => sha256(nodePrefix, left, right))
    const frontier = hashes.map((hash) => hash.toString('hex'))
    roots.set(size, { root: root.toString('hex'), frontier })
  }
  return roots
}
