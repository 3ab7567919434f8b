import { createMinHeap } from './min-heap.ts'
import { noRank, type RankTable, rankOf } from './rank-table.ts'

/** Below this many bytes the plain loop is faster. */
const shortMaxBytes = 64
const positions = 2 ** 32
const none = -1

/**
 * Counts the tokens of one piece by byte pair encoding: repeatedly merges the neighbours of lowest rank, the leftmost
 * first. The bytes are a latin-1 string. Candidate merges are in a heap, so a piece of n bytes takes O(n log n).
 */
export function createMerger(ranks: RankTable): (bytes: string) => number {
  const countLong = createLongMerger(ranks)
  return (bytes) => {
    if (rankOf(ranks, bytes, 0, bytes.length) !== noRank) return 1
    return bytes.length < shortMaxBytes ? countShort(ranks, bytes) : countLong(bytes)
  }
}

/** Quadratic, and used for short pieces only. */
function countShort(ranks: RankTable, bytes: string): number {
  const cuts = Array.from({ length: bytes.length + 1 }, (_, index) => index)
  for (;;) {
    let lowest = Infinity
    let best = none
    for (let index = 0; index + 2 < cuts.length; index++) {
      const rank = rankOf(ranks, bytes, cuts[index] ?? 0, cuts[index + 2] ?? 0)
      if (rank !== noRank && rank < lowest) {
        lowest = rank
        best = index
      }
    }
    if (best === none) return cuts.length - 1
    cuts.splice(best + 1, 1)
  }
}

/**
 * Parts are identified by the position of their first byte and form a linked list. A heap entry is
 * rank x 2^32 + position, which is exact in a double because ranks are below 2^20. An entry is stale when the candidate
 * rank at its position has changed.
 */
function createLongMerger(ranks: RankTable) {
  const heap = createMinHeap()
  let list = createList(4096)

  function offer(bytes: string, part: number) {
    const { next, previous, candidate } = list
    const right = next[part] ?? none
    candidate[part] = none
    if (right >= bytes.length) return
    const end = next[right] ?? bytes.length
    const rank = rankOf(ranks, bytes, part, end)
    if (rank === noRank) return
    candidate[part] = rank
    previous[right] = part
    heap.push(rank * positions + part)
  }

  /** Merges a part with its right neighbour. */
  function merge(bytes: string, part: number) {
    const { next, previous, candidate } = list
    const right = next[part] ?? none
    const behind = next[right] ?? bytes.length
    candidate[right] = none
    next[part] = behind
    previous[behind] = part
    const before = previous[part] ?? none
    if (before !== none) offer(bytes, before)
    offer(bytes, part)
  }

  return (bytes: string): number => {
    if (bytes.length >= list.next.length) list = createList(bytes.length * 2)
    for (let part = 0; part <= bytes.length; part++) {
      list.next[part] = part + 1
      list.previous[part] = part - 1
    }
    for (let part = 0; part < bytes.length; part++) offer(bytes, part)
    let tokens = bytes.length
    for (let entry = heap.pop(); entry !== undefined; entry = heap.pop()) {
      const part = entry % positions
      if (list.candidate[part] !== (entry - part) / positions) continue
      merge(bytes, part)
      tokens--
    }
    return tokens
  }
}

const createList = (length: number) => ({
  next: new Int32Array(length + 1),
  previous: new Int32Array(length + 1),
  /** The rank of the part merged with its right neighbour; -1 if that is not a token. */
  candidate: new Int32Array(length + 1),
})
