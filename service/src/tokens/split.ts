import { after, characterClass, classAt } from './character-class.ts'

/**
 * Where the piece that begins at a position ends. This is what the published patterns of the encodings
 * match, written as a scanner: a regular expression needs a stack as long as the longest piece, and runs
 * out of it on a few megabytes. Each character is looked at a bounded number of times.
 */
export type PieceEnd = (text: string, start: number) => number

const { upper, lower, caseless, mark, number, newline, space, other } = characterClass

const setOf = (...members: number[]) => members.reduce((set, member) => set | (1 << member), 0)
const upperLike = setOf(upper, caseless, mark)
const lowerLike = setOf(lower, caseless, mark)
const letters = setOf(upper, lower, caseless)
const spaces = setOf(space, newline)
const marksAndOthers = setOf(mark, other)
/** What may stand in front of a word, once. */
const edges = setOf(mark, space, other)

const isIn = (set: number, text: string, position: number) =>
  ((set >> classAt(text, position)) & 1) === 1

function endOfRun(set: number, text: string, start: number): number {
  let end = start
  while (isIn(set, text, end)) end = after(text, end)
  return end
}

/** Upper case, then at least one lower case letter; upper case gives back what the lower case needs. */
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

/** The end of 's, 'll and their like; `start` when there is none. */
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

/** Up to the last line end; else all of it, but for one that belongs to the word behind. */
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
