import { hash } from 'node:crypto'

// The tree of RFC 6962, section 2.1, built from left to right. Only the roots of its complete subtrees are kept: their number
// is that of the ones in the binary form of the size.

/** SHA-256 of a zero byte and the text. */
export const hashLeaf = (text: string): Buffer => hash('sha256', `\0${text}`, 'buffer')

const hashNode = (left: Buffer, right: Buffer): Buffer =>
  hash('sha256', Buffer.concat([nodePrefix, left, right]), 'buffer')

const nodePrefix = Buffer.from([1])

/** The root of a tree with these complete subtrees, the largest first. */
export function rootOf(frontier: readonly Buffer[]): Buffer {
  if (frontier.length === 0) return hash('sha256', '', 'buffer')
  return frontier.reduceRight((right, left) => hashNode(left, right))
}

/** How many complete subtrees a tree of this size has. Sizes can exceed 32 bits, so there are no bit operations here. */
export const frontierLength = (size: number) => subtreeSizes(size).length

/** The sizes of the complete subtrees, the largest first: powers of two. */
export function subtreeSizes(size: number): number[] {
  const sizes: number[] = []
  for (let rest = size, power = 1; rest > 0; rest = Math.floor(rest / 2), power *= 2) {
    if (rest % 2 === 1) sizes.unshift(power)
  }
  return sizes
}

/**
 * The root that a leaf and the hashes beside its path lead to, as RFC 9162 (2.1.3.2) says. Undefined: there are more or fewer
 * hashes than a tree of this size has at this place.
 */
export function rootFrom(
  leaf: Buffer,
  { index, size }: { index: number; size: number },
  hashes: readonly Buffer[],
): Buffer | undefined {
  const up = (place: number) => Math.floor(place / 2)
  let [node, at, last] = [leaf, index, size - 1]
  for (const hash of hashes) {
    if (last === 0) return undefined
    if (at % 2 === 1 || at === last) {
      node = hashNode(hash, node)
      while (at % 2 === 0 && at !== 0) [at, last] = [up(at), up(last)]
    } else {
      node = hashNode(node, hash)
    }
    ;[at, last] = [up(at), up(last)]
  }
  return last === 0 ? node : undefined
}

export type Tree = ReturnType<typeof createTree>

/** A tree that grows, empty or continued from the roots of its complete subtrees. */
export function createTree(size = 0, roots: readonly Buffer[] = []) {
  const frontier = [...roots]
  let count = size
  return {
    size: () => count,
    frontier: (): readonly Buffer[] => frontier,
    append(leaf: Buffer) {
      let node = leaf
      for (let rest = count; rest % 2 === 1; rest = Math.floor(rest / 2)) {
        const left = frontier.pop()
        if (!left) throw new Error('The tree has fewer subtrees than its size needs.')
        node = hashNode(left, node)
      }
      frontier.push(node)
      count++
    },
  }
}
