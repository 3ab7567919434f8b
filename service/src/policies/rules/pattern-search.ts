import type { CompiledPattern, PatternEngine, PatternSet } from '#text/pattern-engine.ts'
import type { PatternShape } from '#text/pattern-shape.ts'
import type { Asker, Steps } from '#text/steps.ts'

import type { SetRule } from './rule-set.ts'

/** How much of a text is searched in one step. */
export const sliceLength = 8 * 1024

/** A wider pattern is not looked for in slices, because they would have to overlap too much. */
const slicedWidthMax = 4096

type Group = {
  patterns: readonly string[]
  set: PatternSet
  /** The most that one of their matches can span; Infinity: these patterns are not looked for in slices. */
  width: number
  /** Whether some enforcing rule asks for them: it cannot do without the search. */
  isEnforced: boolean
}

/** Patterns that occur in a text, and those of which that could not be found out. */
export type PatternsFound = { hits: Set<string>; missed: Set<string> }

/** Looks for the patterns of many rules in a segment. */
type PatternSearch = (text: string, found: PatternsFound) => Steps<void>

export function* createPatternSearch(
  rules: readonly Pick<SetRule, 'mode' | 'rule'>[],
  engine: PatternEngine,
): Steps<PatternSearch> {
  const shapes = new Map<string, PatternShape>()
  const enforced = new Set<string>()
  for (const { mode, rule } of rules) {
    for (const [pattern, shape] of rule.shapes) {
      shapes.set(pattern, shape)
      if (mode === 'enforcing') enforced.add(pattern)
    }
    yield
  }
  const sliced = [...shapes].filter(([, { width }]) => width <= slicedWidthMax)
  const others = [...shapes].filter(([, { width }]) => width > slicedWidthMax)
  const widest = sliced.reduce((most, [, { width }]) => Math.max(most, width), 0)
  // The search for a pattern that only monitoring rules ask for may fail, and no enforcing rule is affected.
  const [wanted, watched] = [true, false].map((isEnforced) =>
    others.filter(([pattern]) => enforced.has(pattern) === isEnforced),
  )
  const kinds = [
    { shapes: sliced, width: widest, isEnforced: true },
    { shapes: wanted ?? [], width: Infinity, isEnforced: true },
    { shapes: watched ?? [], width: Infinity, isEnforced: false },
  ]
  const groups: Group[] = []
  for (const { shapes: some, ...kind } of kinds) {
    if (some.length > 0) groups.push(yield* createGroup(some, kind, engine))
  }

  return function* search(text, found) {
    for (const group of groups) {
      if (text.length <= sliceLength) {
        for (const number of group.set.hits(text)) add(found.hits, group, number)
        yield
      } else if (group.width === Infinity) {
        yield* searchAll(text, group, found, engine)
      } else {
        yield* searchSlices(text, group, found.hits)
      }
    }
  }
}

function* createGroup(
  shapes: readonly (readonly [string, PatternShape])[],
  kind: Pick<Group, 'width' | 'isEnforced'>,
  engine: PatternEngine,
): Steps<Group> {
  const set = yield* joinPatterns(shapes, engine)
  return { ...kind, patterns: shapes.map(([pattern]) => pattern), set }
}

/** A set of patterns, most of which were compiled with their rules. */
export function* joinPatterns(
  shapes: Iterable<readonly [string, PatternShape]>,
  engine: PatternEngine,
): Steps<PatternSet> {
  const compiled: CompiledPattern[] = []
  for (const [pattern, shape] of shapes) {
    compiled.push(shape.compiled ?? engine.compile(pattern))
    yield
  }
  return yield* engine.joinInSteps(compiled)
}

/** A match may span the whole text, so no part of it can be searched alone. */
function* searchAll(
  text: string,
  group: Group,
  { hits, missed }: PatternsFound,
  { searchElsewhere }: PatternEngine,
): Steps<void> {
  const note = (numbers: readonly number[]) => {
    for (const number of numbers) add(hits, group, number)
  }
  const here = () => note(group.set.hits(text))
  const elsewhere = async (asker: Asker) =>
    searchElsewhere ? note(await searchElsewhere(group.patterns, text, asker)) : here()
  try {
    yield { here, elsewhere }
  } catch (error) {
    if (group.isEnforced) throw error
    for (const pattern of group.patterns) missed.add(pattern)
  }
}

/**
 * Each slice is searched for the matches that start in it. They see what they would see in the whole text: a slice comes with the
 * character before it, and with as many behind it as a match can span and one more. So no slice is ever searched twice, and what
 * is found depends on the text alone.
 */
function* searchSlices(text: string, group: Group, hits: Set<string>): Steps<void> {
  for (let start = 0; start < text.length; start += sliceLength) {
    const from = Math.min(start, 1)
    const seen = text.slice(start - from, start + sliceLength + group.width + 1)
    const isLast = start + sliceLength >= text.length
    for (const number of group.set.hits(seen)) {
      if (hits.has(group.patterns[number] ?? '')) continue
      const match = group.set.find(number, seen, from)
      if (match && (isLast || match.start < from + sliceLength)) add(hits, group, number)
    }
    yield
  }
}

function add(hits: Set<string>, { patterns }: Group, number: number) {
  const pattern = patterns[number]
  if (pattern !== undefined) hits.add(pattern)
}
