import type { Steps } from '#platform/steps/steps.ts'

import { createMerger } from './heap-bpe.ts'
import type { RankTable } from './rank-table.ts'
import type { PieceEnd } from './split.ts'

type Options = { ranks: RankTable; pieceEnd: PieceEnd; sliceCharacters?: number }

/** Counts a text in steps of at most a few milliseconds, so that the caller can do other work between them. */
export type TextCounter = (text: string) => Steps<number>

const cachedPieceCharacters = 24
const cachedPiecesMax = 50_000
const stepCharacters = 4096

/**
 * Counts the tokens of texts. Special tokens are counted as plain text. Pieces longer than a slice are cut to bound
 * the memory, which changes a count by less than a thousandth.
 */
export function createTextCounter(options: Options): TextCounter {
  const { ranks, pieceEnd, sliceCharacters = 4096 } = options
  const countBytes = createMerger(ranks)
  const cache = new Map<string, number>()

  function countPiece(piece: string): number {
    const cached = cache.get(piece)
    if (cached !== undefined) return cached
    const tokens = countBytes(Buffer.from(piece, 'utf8').toString('latin1'))
    if (piece.length <= cachedPieceCharacters) {
      if (cache.size >= cachedPiecesMax) cache.clear()
      cache.set(piece, tokens)
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

/** The end of a slice, moved so that it does not cut a surrogate pair. */
function sliceEnd(text: string, start: number, end: number): number {
  const isSplit = end < text.length && (text.codePointAt(end - 1) ?? 0) > 0xffff
  return isSplit && end - 1 > start ? end - 1 : end
}
