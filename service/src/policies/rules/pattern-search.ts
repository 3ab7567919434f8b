import { type Steps, takeElsewhere } from '#platform/steps/steps.ts'
import type { CompiledPattern, PatternEngine, PatternSet } from '#text/pattern-engine.ts'
import type { SearchElsewhere } from '#text/pattern-set.ts'
import type { PatternShape } from '#text/pattern-shape.ts'

import { cutTexts, searchParts, slicedWidthMax, sliceLength } from './searched-parts.ts'

/** A rule, as far as its patterns are concerned. */
export type RuleWithPatterns = {
  readonly mode: 'monitoring' | 'enforcing'
  readonly rule: { readonly shapes: ReadonlyMap<string, PatternShape> }
}

type Group = {
  patterns: readonly string[]
  set: PatternSet
  /** The most that one of their matches can span; Infinity: these patterns are not looked for in slices. */
  width: number
  /** Whether some enforcing rule asks for them: it cannot do without the search. */
  isEnforced: boolean
  elsewhere: SearchElsewhere | undefined
}

/** Patterns that occur in a text, and those of which that could not be found out. */
export type PatternsFound = { hits: Set<string>; missed: Set<string> }

/** Looks for the patterns of many rules in texts. */
type PatternSearch = {
  read(text: string): Steps<void>
  /** All texts are read: what takes long is looked for in all of them together. */
  end(): Steps<void>
}

export function* createPatternSearch(
  rules: readonly RuleWithPatterns[],
  engine: PatternEngine,
): Steps<(found: PatternsFound) => PatternSearch> {
  const groups: Group[] = []
  for (const { shapes, isEnforced } of yield* groupPatterns(rules, engine)) {
    const width = shapes.reduce((most, [, shape]) => Math.max(most, shape.width), 0)
    groups.push({
      patterns: shapes.map(([pattern]) => pattern),
      set: yield* joinPatterns(shapes, engine),
      width: width > slicedWidthMax ? Infinity : width,
      isEnforced,
      elsewhere: searchElsewhere(shapes, engine),
    })
  }
  return (found) => openSearch(groups, found)
}

type Shapes = (readonly [string, PatternShape])[]

/**
 * The search for patterns that only monitoring rules ask for may fail where it is done elsewhere, and no enforcing rule
 * is affected. So they are looked for alone there.
 */
function* groupPatterns(
  rules: readonly RuleWithPatterns[],
  engine: PatternEngine,
): Steps<{ shapes: Shapes; isEnforced: boolean }[]> {
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
  const divide = (some: Shapes) =>
    [true, false].map((isEnforced) => ({
      shapes: some.filter(([pattern]) => enforced.has(pattern) === isEnforced),
      isEnforced,
    }))
  const isQuick = !searchElsewhere(sliced, engine)?.isNeeded
  const groups = [...(isQuick ? [{ shapes: sliced, isEnforced: true }] : divide(sliced))]
  return [...groups, ...divide(others)].filter(({ shapes: some }) => some.length > 0)
}

function openSearch(groups: readonly Group[], found: PatternsFound): PatternSearch {
  // Costs may become known while texts are read, but each group is looked for in one way.
  const slow = new Set(groups.filter(({ elsewhere }) => elsewhere?.isNeeded))
  const postponed = new Map<Group, string[]>()
  const postpone = (group: Group, text: string) => {
    const texts = postponed.get(group) ?? []
    texts.push(text)
    postponed.set(group, texts)
  }
  return {
    *read(text) {
      for (const group of groups) {
        const isWhole = text.length > sliceLength && group.width === Infinity
        if (slow.has(group) || isWhole) postpone(group, text)
        else yield* searchSlices(text, group, found.hits)
      }
    },
    *end() {
      for (const [group, texts] of postponed) yield* searchAll(texts, group, found)
    },
  }
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

/** The search for the same patterns outside of the event loop, where there is such a place. */
export function searchElsewhere(
  shapes: Iterable<readonly [string, PatternShape]>,
  { elsewhere }: PatternEngine,
): SearchElsewhere | undefined {
  return elsewhere?.search(Array.from(shapes, ([pattern, { width }]) => ({ pattern, width })))
}

function* searchAll(
  texts: readonly string[],
  group: Group,
  { hits, missed }: PatternsFound,
): Steps<void> {
  const { patterns, set, elsewhere, isEnforced } = group
  const searchHere = () => texts.flatMap((text) => set.hits(text))
  try {
    const numbers = yield* takeElsewhere<readonly number[]>(searchHere, async (asker) =>
      elsewhere ? elsewhere.hits(texts, asker) : searchHere(),
    )
    for (const number of numbers) add(hits, patterns, number)
  } catch (error) {
    if (isEnforced) throw error
    for (const pattern of patterns) missed.add(pattern)
  }
}

function* searchSlices(text: string, group: Group, hits: Set<string>): Steps<void> {
  const { set, patterns, width } = group
  const isKnown = (number: number) => hits.has(patterns[number] ?? '')
  const cut = cutTexts([text], 0, width)
  for (let parts = cut(sliceLength); parts.length > 0; parts = cut(sliceLength)) {
    for (const { number } of searchParts(set, parts, false, isKnown)) add(hits, patterns, number)
    yield
  }
}

function add(hits: Set<string>, patterns: readonly string[], number: number) {
  const pattern = patterns[number]
  if (pattern !== undefined) hits.add(pattern)
}
