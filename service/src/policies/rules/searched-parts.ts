import type { Steps } from '#platform/steps/steps.ts'
import type { FoundPattern, PatternMatch, PatternSet } from '#text/pattern-set.ts'

/** How much of a text is searched in one step. */
export const sliceLength = 8 * 1024

/** A wider pattern is not looked for in slices, because they would have to overlap too much. */
export const slicedWidthMax = 4096

/** A part of a text, with what its matches see around it. */
export type SearchedPart = {
  readonly text: string
  /** Matches that start earlier belong to another part. */
  readonly from: number
  /** So do those that start here or later; null: none do. */
  readonly until: number | null
  /** Where the part begins in its text. */
  readonly offset: number
}

/**
 * Cuts texts into parts, each of which is searched for the matches that start in it. They see what they would see in the whole
 * text: a part comes with the character before it, and with as many behind it as a match can span and one more. So nothing is
 * searched twice, and what is found depends on the text alone.
 */
export function cutTexts(texts: readonly string[], from: number, width: number) {
  let [number, start] = [0, from]

  /** The next parts, of about this length together; none when all are searched. */
  return function next(length: number): SearchedPart[] {
    const parts: SearchedPart[] = []
    for (let left = length; left > 0 && number < texts.length;) {
      const text = texts[number] ?? ''
      const end = width === Infinity || start + left >= text.length ? text.length : start + left
      parts.push(partOf(text, start, end, width))
      // An empty text is searched too, and must not cost nothing.
      left -= Math.max(end - start, 1)
      start = end
      if (end < text.length) continue
      number++
      start = 0
    }
    return parts
  }
}

function partOf(text: string, start: number, end: number, width: number): SearchedPart {
  const isLast = end === text.length
  const before = Math.min(start, 1)
  const offset = start - before
  return {
    text: text.slice(offset, isLast ? text.length : end + width + 1),
    from: before,
    until: isLast ? null : before + (end - start),
    offset,
  }
}

export type FoundInPart = FoundPattern & { readonly part: number }

/** Which patterns have matches that start in the parts; where the first of each is only if that is wanted. */
export function searchParts(
  set: PatternSet,
  parts: readonly SearchedPart[],
  wantsPlaces: boolean,
  isKnown = (_number: number) => false,
): FoundInPart[] {
  const found = new Map<number, FoundInPart>()
  for (const [part, { text, from, until }] of parts.entries()) {
    const isWhole = from === 0 && until === null
    for (const number of set.hits(text)) {
      if (found.has(number) || isKnown(number)) continue
      const match = isWhole && !wantsPlaces ? { start: 0, end: 0 } : set.find(number, text, from)
      const isInPart = match && (until === null || match.start < until)
      if (isInPart) found.set(number, { ...match, number, part })
    }
  }
  return [...found.values()]
}

type Sought = {
  set: PatternSet
  pattern: number
  /** The most that a match can span. */
  width: number
}

/** The leftmost match at or after `from`. Only a pattern without a widest match is looked for in all of the text at once. */
function* findInSteps(
  { set, pattern, width }: Sought,
  text: string,
  from: number,
): Steps<PatternMatch | null> {
  const length = width === Infinity ? text.length + 1 : sliceLength
  for (let start = from; start <= text.length; start += length) {
    // A match sees the character before it and one behind it.
    const before = Math.min(start, 1)
    const offset = start - before
    const match = set.find(pattern, text.slice(offset, start + length + width + 1), before)
    yield
    if (match && (match.start < before + length || start + length >= text.length)) {
      return { start: offset + match.start, end: offset + match.end }
    }
  }
  return null
}

/** The first matches of a pattern, as many as `most`. */
export function* findAllInSteps(sought: Sought, text: string, most: number): Steps<PatternMatch[]> {
  const found: PatternMatch[] = []
  for (let from = 0; found.length < most && from <= text.length;) {
    const match = yield* findInSteps(sought, text, from)
    if (!match) break
    found.push(match)
    from = Math.max(match.end, match.start + 1)
  }
  return found
}
