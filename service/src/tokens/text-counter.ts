import { createMerger, type Ranks } from './heap-bpe.ts'
import type { PieceEnd } from './split.ts'

type Options = { ranks: Ranks; pieceEnd: PieceEnd; sliceCharacters?: number }

/** Counts a text in steps of a few milliseconds at most: whoever takes them can do other work between. */
export type TextCounter = (text: string) => Generator<void, number>

const cachedPieceCharacters = 24
const cachedPiecesMax = 50_000
const stepCharacters = 4096

/**
 * Counts the tokens of texts. Special tokens have no meaning here: their text is plain text. Pieces
 * longer than a slice are cut, so that memory stays flat; the count moves by less than a thousandth.
 */
export function createTextCounter(options: Options): TextCounter {
  const { ranks, pieceEnd, sliceCharacters = 4096 } = options
  const countBytes = createMerger(ranks)
  const known = new Map<string, number>()

  function countPiece(piece: string): number {
    const cached = known.get(piece)
    if (cached !== undefined) return cached
    const tokens = countBytes(Buffer.from(piece, 'utf8').toString('latin1'))
    if (piece.length <= cachedPieceCharacters) {
      if (known.size >= cachedPiecesMax) known.clear()
      known.set(piece, tokens)
    }
    return tokens
  }

  return function* count(text) {
    let tokens = 0
    let stepEnd = stepCharacters
    for (let start = 0; start < text.length;) {
      const end = pieceEnd(text, start)
      while (start < end) {
        const cut = sliceEnd(text, start, Math.min(end, start + sliceCharacters))
        tokens += countPiece(text.slice(start, cut))
        start = cut
        if (start < stepEnd) continue
        stepEnd = start + stepCharacters
        yield
      }
    }
    return tokens
  }
}

/** Never between the two halves of a character. */
function sliceEnd(text: string, start: number, end: number): number {
  const isSplit = end < text.length && (text.codePointAt(end - 1) ?? 0) > 0xffff
  return isSplit && end - 1 > start ? end - 1 : end
}
