import type { Piece, PieceSource } from '#formats/answer.ts'

export type OpenPieces = Pick<PieceSource, 'readWhile'> & { close(): Promise<void> }

/** Pieces that are taken where they arrive if their source can do that, and one by one otherwise. */
export function openPieces(pieces: AsyncIterable<Piece> | PieceSource): OpenPieces {
  const iterator = pieces[Symbol.asyncIterator]()
  return {
    async close() {
      await iterator.return?.()
    },
    async readWhile(take) {
      if ('readWhile' in pieces) return pieces.readWhile(take)
      for (;;) {
        const next = await iterator.next()
        if (next.done) return true
        if (!take(next.value)) return false
      }
    },
  }
}
