import { type JudgedContent, JudgeFailure } from './judge.ts'
import { contextMaxCharacters } from './models/judge-prompt.ts'
import { isInsidePair, lastCharacters } from './models/prompt-encoding.ts'

/** About 5,000 tokens of English: small models with short windows can read it, and still see what it is about. */
const pieceMaxCharacters = 20_000
/** What matches at the end of a piece is at the beginning of the next, too. */
const overlapCharacters = 500
/** At most 16 pieces. */
export const textMaxCharacters = 300_000

/**
 * A long text in pieces that a judge can read. Each has what stands before it as its context. The score of a text is the
 * highest of its pieces.
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

/** The place, or the one before it if a character would be cut in two. */
function cutAt(text: string, at: number): number {
  if (at >= text.length) return text.length
  return isInsidePair(text, at) ? at - 1 : at
}
