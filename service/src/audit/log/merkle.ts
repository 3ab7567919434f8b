import { hash } from 'node:crypto'

// The Merkle tree of RFC 6962. The roots of its complete subtrees, from the largest to the smallest, are its frontier: all that
// is needed to append leaves and to compute the root.

const hashBytes = 32
const leafPrefix = '\0'
const nodePrefix = Buffer.from([1])

export const hashLeaf = (record: string): Buffer => hash('sha256', leafPrefix + record, 'buffer')

export const hashNodes = (left: Buffer, right: Buffer): Buffer =>
  hash('sha256', Buffer.concat([nodePrefix, left, right]), 'buffer')

export type Tree = { readonly size: number; readonly frontier: readonly Buffer[] }

export const emptyTree: Tree = { size: 0, frontier: [] }

/** The tree of a stored frontier. Throws if it cannot be one of this size: every leaf after it would be wrong. */
export function readTree(size: number, frontier: Buffer): Tree {
  if (frontier.length !== countSubtrees(size) * hashBytes) {
    throw new Error(`A tree of ${size} leaves cannot have a frontier of ${frontier.length} bytes.`)
  }
  return { size, frontier: splitHashes(frontier) }
}

/** One for each 1 of the size in binary. */
function countSubtrees(size: number): number {
  let count = 0
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) count += rest % 2
  return count
}

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
  const hashes: Buffer[] = []
  for (let at = 0; at < bytes.length; at += hashBytes) {
    hashes.push(bytes.subarray(at, at + hashBytes))
  }
  return hashes
}

/** Where a subtree of `2 ** level` leaves stands among those of its size. */
export type TreePlace = { readonly level: number; readonly index: number }

/**
 * The subtrees whose roots prove that a leaf is in a tree of this size, from the leaf up. A subtree that is not complete consists of
 * several complete ones, which have to be joined from the right.
 */
export function placesOfProof(leafIndex: number, size: number): TreePlace[][] {
  const path: TreePlace[][] = []
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
function completeSubtrees(first: number, end: number): TreePlace[] {
  const places: TreePlace[] = []
  for (let at = first; at < end;) {
    let level = 0
    while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= end) level++
    places.push({ level, index: at / 2 ** level })
    at += 2 ** level
  }
  return places
}
