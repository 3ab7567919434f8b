import { after, characterClass, classAt } from './character-class.ts'

/**
 * Returns the end of the piece that starts at a position. The pieces are the matches of the published patterns of the
 * encodings. A scanner finds them, because the stack that a regular expression needs grows with the length of a piece
 * and overflows at a few megabytes. Each character is visited a bounded number of times.
 */
export type PieceEnd = (text: string, start: number) => number

const { upper, lower, caseless, mark, number, newline, space, other } = characterClass

const setOf = (...members: number[]) => members.reduce((set, member) => set | (1 << member), 0)
const upperLike = setOf(upper, caseless, mark)
const lowerLike = setOf(lower, caseless, mark)
const letters = setOf(upper, lower, caseless)
const spaces = setOf(space, newline)
const marksAndOthers = setOf(mark, other)
/** The characters of which one may precede a word. */
const edges = setOf(mark, space, other)

const isIn = (set: number, text: string, position: number) =>
  ((set >> classAt(text, position)) & 1) === 1

function endOfRun(set: number, text: string, start: number): number {
  let end = start
  while (isIn(set, text, end)) end = after(text, end)
  return end
}

/**
 * Upper case, then at least one lower case letter. Where no lower case follows, the last character that can be either
 * counts as lower case, as in a regular expression that backtracks.
 */
function endOfCapitalized(text: string, start: number): number | undefined {
  let lastShared: number | undefined
  let end = start
  while (isIn(upperLike, text, end)) {
    const next = after(text, end)
    if (isIn(lowerLike, text, end)) lastShared = next
    end = next
  }
  return isIn(lowerLike, text, end) ? endOfRun(lowerLike, text, end) : lastShared
}

function endOfCapitals(text: string, start: number): number | undefined {
  const end = endOfRun(upperLike, text, start)
  return end > start ? endOfRun(lowerLike, text, end) : undefined
}

function endOfLetters(text: string, start: number): number | undefined {
  const end = endOfRun(letters, text, start)
  return end > start ? end : undefined
}

const contraction = /'(?:[stmd]|re|ve|ll)/iy

/** The end of a contraction such as 's or 'll; `start` if there is none. */
function endOfContraction(text: string, start: number): number {
  if (text[start] !== "'") return start
  contraction.lastIndex = start
  return contraction.test(text) ? contraction.lastIndex : start
}

function endOfNumber(text: string, start: number): number | undefined {
  let end = start
  for (let digits = 0; digits < 3 && classAt(text, end) === number; digits++) end = after(text, end)
  return end > start ? end : undefined
}

function endOfPunctuation(text: string, start: number, tail: string): number | undefined {
  const first = text[start] === ' ' ? start + 1 : start
  let end = endOfRun(marksAndOthers, text, first)
  if (end === first) return undefined
  while (end < text.length && tail.includes(text.charAt(end))) end++
  return end
}

/** Ends after the last newline; without one, before the last space if text follows, which belongs to the next piece. */
function endOfSpace(text: string, start: number): number {
  let lastLineEnd: number | undefined
  let end = start
  while (isIn(spaces, text, end)) {
    if (classAt(text, end) === newline) lastLineEnd = end + 1
    end++
  }
  if (lastLineEnd !== undefined) return lastLineEnd
  return end === text.length || end === start + 1 ? end : end - 1
}

const endOfO200k: PieceEnd = (text, start) => {
  const afterEdge = isIn(edges, text, start) ? after(text, start) : start
  const word =
    endOfCapitalized(text, afterEdge) ??
    endOfCapitalized(text, start) ??
    endOfCapitals(text, afterEdge) ??
    endOfCapitals(text, start)
  if (word !== undefined) return endOfContraction(text, word)
  return (
    endOfNumber(text, start) ?? endOfPunctuation(text, start, '\r\n/') ?? endOfSpace(text, start)
  )
}

const endOfCl100k: PieceEnd = (text, start) => {
  const short = endOfContraction(text, start)
  if (short > start) return short
  const afterEdge = isIn(edges, text, start) ? after(text, start) : start
  return (
    endOfLetters(text, afterEdge) ??
    endOfNumber(text, start) ??
    endOfPunctuation(text, start, '\r\n') ??
    endOfSpace(text, start)
  )
}

export const pieceEnds = { o200k: endOfO200k, cl100k: endOfCl100k } as const
