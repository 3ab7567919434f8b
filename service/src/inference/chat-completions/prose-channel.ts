/**
 * One text of the answer (its content, its reasoning or its refusal) into which blocks are written one
 * after the other. What comes for a later block while an earlier one is open waits for its turn.
 */
export function createProseChannel<Piece>(write: (piece: Piece) => void) {
  /** Open blocks and those that wait, in the order in which they started. */
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
