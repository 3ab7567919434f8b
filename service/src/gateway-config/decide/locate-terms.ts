import type { Steps } from '#platform/steps/steps.ts'
import { foldCases } from '#text/folded-scan.ts'
import type { LiteralSet } from '#text/literal-set.ts'
import { normalise } from '#text/normalise.ts'

/** A term of a list, and where it is, in UTF-16 code units of the text as it was sent. */
export type TermMatch = { start: number; end: number; pattern: string }

/** A list, and the terms as they are looked for: normalised, and without cases. */
export type SoughtTerms = {
  readonly terms: readonly string[]
  readonly folded: readonly string[]
  readonly set: LiteralSet
}

const matchesMax = 50
const sliceLength = 256

/** Finds where terms occur: the first 50, by their place. Of terms that differ only in case the first of its list is told. */
export function* locateTerms(text: string, lists: readonly SoughtTerms[]): Steps<TermMatch[]> {
  const { folded, toOriginal } = foldWithPlaces(text)
  yield
  const found: TermMatch[] = []
  for (const list of lists) found.push(...(yield* locateFolded(folded, list)))
  return first(found).map(({ start, end, pattern }) => ({ ...toOriginal(start, end), pattern }))
}

const first = (found: readonly TermMatch[]): TermMatch[] =>
  found
    .toSorted((left, right) => left.start - right.start || left.end - right.end)
    .slice(0, matchesMax)

function* locateFolded(text: string, { terms, folded, set }: SoughtTerms): Steps<TermMatch[]> {
  const scan = set.scan()
  let found: TermMatch[] = []
  for (let from = 0; from < text.length; from += sliceLength) {
    const seen = new Map<string, TermMatch>()
    scan.read(text.slice(from, from + sliceLength), (number, start) => {
      const end = start + (folded[number] ?? '').length
      const place = `${start}-${end}`
      if (!seen.has(place)) seen.set(place, { start, end, pattern: terms[number] ?? '' })
    })
    found = first([...found, ...seen.values()])
    // Whatever ends later begins later than all of them.
    const last = found.length === matchesMax ? found.at(-1) : undefined
    if (last && last.start + set.longest <= from + sliceLength) break
    yield
  }
  return found
}

/** A text as terms are looked for in it, and what its places are in the text as it was sent. */
function foldWithPlaces(original: string) {
  const { text, originalOffset } = normalise(original)
  /** For each unit of what is folded: where the character begins that it comes from. */
  const places: number[] = []
  let folded = ''
  let at = 0
  for (const character of text) {
    const units = foldCases(character)
    for (let unit = 0; unit < units.length; unit++) places.push(at)
    folded += units
    at += character.length
  }
  const startOf = (index: number) => originalOffset(places[index] ?? text.length)

  /** Several characters may come from one, which then belongs to the match as a whole. */
  function endOf(lastUnit: number): number {
    const start = startOf(lastUnit)
    let next = lastUnit + 1
    while (next < places.length && startOf(next) === start) next++
    return startOf(next)
  }

  return {
    folded,
    toOriginal: (start: number, end: number) => ({ start: startOf(start), end: endOf(end - 1) }),
  }
}
