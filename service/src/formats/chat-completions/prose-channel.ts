/**
 * One text of the answer (content, reasoning or refusal), into which blocks are written one after the other.
 * Pieces of a later block wait while an earlier one is open.
 */
export function createProseChannel<Piece>(write: (piece: Piece) => void) {
  /** Blocks that have not ended, in the order in which they started. Only the first is written at once. */
  const queue: { index: number; waiting: Piece[]; hasEnded: boolean }[] = []

  function advance() {
    while (queue[0]?.hasEnded) {
      queue.shift()
      for (const piece of queue[0]?.waiting.splice(0) ?? []) write(piece)
    }
  }

  return {
    start(index: number) {
      queue.push({ index, waiting: [], hasEnded: false })
    },
    add(index: number, piece: Piece) {
      if (queue[0]?.index === index) write(piece)
      else queue.find((block) => block.index === index)?.waiting.push(piece)
    },
    end(index: number) {
      const block = queue.find((open) => open.index === index)
      if (block) block.hasEnded = true
      advance()
    },
  }
}
