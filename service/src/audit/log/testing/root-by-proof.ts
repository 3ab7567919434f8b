import { hashNodes } from '#audit/log/merkle.ts'

/** The root that follows from a leaf and its proof, as RFC 9162 (2.1.3.2) computes it. */
export function rootByProof(
  leaf: Buffer,
  orgSeq: number,
  size: number,
  hashes: readonly Buffer[],
): Buffer {
  let [index, last, root] = [orgSeq - 1, size - 1, leaf]
  for (const each of hashes) {
    if (index % 2 === 1 || index === last) {
      root = hashNodes(each, root)
      while (index % 2 === 0 && index !== 0) [index, last] = [index / 2, Math.floor(last / 2)]
    } else {
      root = hashNodes(root, each)
    }
    ;[index, last] = [Math.floor(index / 2), Math.floor(last / 2)]
  }
  return root
}
