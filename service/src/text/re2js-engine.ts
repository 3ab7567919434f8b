import { RE2JS, RE2Set } from 're2js'

import type { Steps } from '#platform/steps/steps.ts'

import { LiteralSet } from './literal-set.ts'
import { afterPair, asWellFormed, compileShards, createEngine, timed } from './pattern-set.ts'
import type { CompiledPattern, PatternMatch, PatternSet } from './pattern-set.ts'
import { readPatternTree } from './pattern-tree.ts'
import { foldCase, requiredLiterals } from './required-literals.ts'
import type { RequiredLiterals } from './required-literals.ts'

type Compiled = CompiledPattern & {
  readonly expression: RE2JS
  readonly required: RequiredLiterals
}

const patternsPerShard = 25

/** The engine in JavaScript, for machines on which the native one could not be built. */
export const re2jsEngine = createEngine({ name: 're2js', compile, joinInSteps })

function compile(pattern: string): Compiled {
  const expression = RE2JS.compile(pattern)
  expression.test('') // prepares what it otherwise would when it is first used
  const required = readRequiredLiterals(pattern)
  const automatonMs = required.length > 0 ? 0 : timed(() => compileShard([pattern])).ms
  return { pattern, automatonMs, expression, required }
}

/**
 * Its automata are slow, so most patterns are not tried at all: a pattern whose matches must contain some literals is
 * tried only on texts that contain them, and one pass finds the literals of all patterns.
 */
function* joinInSteps(patterns: readonly Compiled[]): Steps<PatternSet> {
  const always = [...patterns.keys()].filter((pattern) => patterns[pattern]?.required.length === 0)
  const shards = yield* compileShards(
    always.flatMap((pattern) => patterns[pattern] ?? []),
    patternsPerShard,
    compileShard,
  )
  const findLikely = yield* prepareFilter(patterns.map(({ required }) => required))

  return {
    hits(text) {
      const wellFormed = asWellFormed(text)
      const found = shards.flatMap(({ first, automaton }) =>
        automaton.match(wellFormed).map((index) => always[first + index] ?? 0),
      )
      const tried = findLikely(wellFormed).filter((pattern) =>
        patterns[pattern]?.expression.test(wellFormed),
      )
      return [...found, ...tried].toSorted((a, b) => a - b)
    },
    find(pattern, text, from): PatternMatch | null {
      const start = afterPair(text, from)
      const wellFormed = asWellFormed(text)
      const expression = patterns[pattern]?.expression
      // Whether there is a match at all is found out ten times faster than where it is.
      if (!expression || start > text.length || !expression.test(wellFormed)) return null
      const matcher = expression.matcher(wellFormed)
      return matcher.find(start) ? { start: matcher.start(), end: matcher.end() } : null
    },
  }
}

/** Returns a function that finds the patterns of whose groups of literals each has one in a text. */
function* prepareFilter(required: readonly RequiredLiterals[]): Steps<(text: string) => number[]> {
  const groups = required.flatMap((some, pattern) =>
    some.map((literals) => ({ pattern, literals })),
  )
  const owners = groups.flatMap(({ literals }, group) => literals.map(() => group))
  const set = yield* LiteralSet.buildInSteps(groups.flatMap(({ literals }) => literals))
  return (text) => {
    const found = new Set(set.hits(foldCase(text)).map((literal) => owners[literal] ?? 0))
    const counts = new Map<number, number>()
    for (const group of found) {
      const pattern = groups[group]?.pattern ?? 0
      counts.set(pattern, (counts.get(pattern) ?? 0) + 1)
    }
    return [...counts.keys()].filter((pattern) => counts.get(pattern) === required[pattern]?.length)
  }
}

function compileShard(patterns: readonly string[]): RE2Set {
  const set = new RE2Set()
  for (const pattern of patterns) set.add(pattern)
  set.compile()
  return set
}

/** A pattern that our parser does not understand is tried on every text. */
function readRequiredLiterals(pattern: string): RequiredLiterals {
  try {
    return requiredLiterals(readPatternTree(pattern))
  } catch {
    return []
  }
}
