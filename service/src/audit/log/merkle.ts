import { createHash, hash } from 'node:crypto'

// The Merkle tree of RFC 6962. The roots of its complete subtrees, from the largest to the smallest, are its frontier: all that
// is needed to append leaves and to compute the root.

const hashBytes = 32
const leafPrefix = Buffer.from([0])
const nodePrefix = Buffer.from([1])

export const hashLeaf = (record: string): Buffer =>
  createHash('sha256').update(leafPrefix).update(record).digest()

export const hashNodes = (left: Buffer, right: Buffer): Buffer =>
  hash('sha256', Buffer.concat([nodePrefix, left, right]), 'buffer')

export type Tree = { readonly size: number; readonly frontier: readonly Buffer[] }

export const emptyTree: Tree = { size: 0, frontier: [] }

export function appendLeaves(tree: Tree, leaves: readonly Buffer[]): Tree {
  const frontier = [...tree.frontier]
  let { size } = tree
  for (const leaf of leaves) {
    let node = leaf
    // Two subtrees of the same size become one, as often as the size ends with a 1 in binary.
    for (let rest = size; rest % 2 === 1; rest = (rest - 1) / 2) {
      node = hashNodes(frontier.pop() as Buffer, node)
    }
    frontier.push(node)
    size += 1
  }
  return { size, frontier }
}

/** The root of a tree with at least one leaf. */
export function rootOf(frontier: readonly Buffer[]): Buffer {
  const root = frontier.reduceRight<Buffer | undefined>(
    (right, left) => (right ? hashNodes(left, right) : left),
    undefined,
  )
  if (!root) throw new Error('An empty tree has no root.')
  return root
}

export function splitHashes(bytes: Buffer): Buffer[] {
  const count = bytes.length / hashBytes
  return Array.from({ length: count }, (_, at) =>
    bytes.subarray(at * hashBytes, (at + 1) * hashBytes),
  )
}

/** Where a subtree of `2 ** level` leaves stands among those of its size. */
export type Place = { readonly level: number; readonly index: number }

/**
 * The subtrees whose roots prove that a leaf is in a tree of this size, from the leaf up. A subtree that is not complete consists of
 * several complete ones, which have to be joined from the right.
 */
export function placesOfProof(leafIndex: number, size: number): Place[][] {
  const path: Place[][] = []
  for (let level = 0, index = leafIndex; index > 0 || 2 ** level < size; level++) {
    const sibling = index % 2 === 1 ? index - 1 : index + 1
    const places = completeSubtrees(
      sibling * 2 ** level,
      Math.min((sibling + 1) * 2 ** level, size),
    )
    if (places.length > 0) path.push(places)
    index = Math.floor(index / 2)
  }
  return path
}

/** The complete subtrees that cover the leaves from `first` up to, but not including, `end`; `first` is where one begins. */
function completeSubtrees(first: number, end: number): Place[] {
  const places: Place[] = []
  for (let at = first; at < end;) {
    let level = 0
    while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= end) level++
    places.push({ level, index: at / 2 ** level })
    at += 2 ** level
  }
  return places
}
