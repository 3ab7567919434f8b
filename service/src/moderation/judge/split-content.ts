import { type JudgedContent, JudgeFailure } from './judge.ts'
import { contextMaxCharacters } from './models/judge-prompt.ts'
import { isInsidePair, lastCharacters } from './models/prompt-encoding.ts'

/**
 * About 5,000 tokens of English. Small models with short context windows can read a piece of this length, and can still tell
 * what it is about.
 */
const pieceMaxCharacters = 20_000
/** The end of a piece is repeated at the beginning of the next, so that a match across the cut is seen. */
const overlapCharacters = 500
/** At most 16 pieces. */
export const textMaxCharacters = 300_000

/**
 * Splits a long text into pieces that a judge can read. The context of each piece is the text before it. The score of a text is
 * the highest of its pieces.
 */
export function splitContent(content: JudgedContent): JudgedContent[] {
  const { text } = content
  if (text.length > textMaxCharacters)
    throw new JudgeFailure('too_long', 'The text is too long to be judged by a model.')

  const pieces: JudgedContent[] = []
  let start = 0
  for (;;) {
    const end = cutAt(text, start + pieceMaxCharacters)
    const before = start === 0 ? content.context : text.slice(0, start)
    const context = lastCharacters(before, contextMaxCharacters)
    pieces.push({ ...content, context, text: text.slice(start, end) })
    if (end === text.length) return pieces
    start = cutAt(text, end - overlapCharacters)
  }
}

/** Moves the cut back by one if it would divide a surrogate pair. */
function cutAt(text: string, at: number): number {
  if (at >= text.length) return text.length
  return isInsidePair(text, at) ? at - 1 : at
}
