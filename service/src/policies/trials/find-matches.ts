import type { PolicyTrialResults } from '@gatehouse/contract/policy-evaluation'

import { joinPatterns } from '#policies/rules/pattern-search.ts'
import type { CompiledRule } from '#policies/rules/rule-program.ts'
import { LiteralSet } from '#text/literal-set.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'
import type { PatternMatch } from '#text/pattern-set.ts'
import { finish, type Steps } from '#text/steps.ts'

import { findEntitiesInSteps, findInSteps, type Normalised, scanInSteps } from './find-in-steps.ts'

type Found = PatternMatch & { pattern: string }
type Match = PolicyTrialResults['results'][number]['matches'][number]

const matchesMax = 50

/** Finds where the patterns, the literals and what `pii()` counts occur; the first 50, by their place in the text as it was sent. */
export function createMatchFinder(
  rule: Pick<CompiledRule, 'patterns' | 'shapes' | 'literals' | 'entities'>,
  engine: PatternEngine,
) {
  const { patterns, shapes, literals, entities } = rule
  const patternSet = finish(joinPatterns(shapes, engine))
  const literalSet = new LiteralSet(literals)
  return function* findMatches({ text, originalOffset }: Normalised): Steps<Match[]> {
    const found = yield* findLiterals(literalSet, literals, text)
    for (const [index, pattern] of patterns.entries()) {
      const width = shapes.get(pattern)?.width ?? Infinity
      const matches = yield* findAll({ set: patternSet, pattern: index, width }, text)
      found.push(...matches.map((match) => ({ ...match, pattern })))
    }
    for (const { kind, start, end } of entities.size > 0 ? yield* findEntitiesInSteps(text) : []) {
      if (entities.has(kind)) found.push({ start, end, pattern: `pii("${kind}")` })
    }
    return found
      .toSorted((left, right) => left.start - right.start || left.end - right.end)
      .slice(0, matchesMax)
      .map(({ start, end, pattern }) => ({
        start: originalOffset(start),
        end: originalOffset(end),
        pattern,
      }))
  }
}

function* findAll(sought: Parameters<typeof findInSteps>[0], text: string): Steps<PatternMatch[]> {
  const found: PatternMatch[] = []
  for (let from = 0; found.length < matchesMax && from <= text.length;) {
    const match = yield* findInSteps(sought, text, from)
    if (!match) break
    found.push(match)
    from = Math.max(match.end, match.start + 1)
  }
  return found
}

function* findLiterals(set: LiteralSet, literals: readonly string[], text: string): Steps<Found[]> {
  const counts = literals.map(() => 0)
  const found: Found[] = []
  yield* scanInSteps(set, text, (literal, start) => {
    const count = (counts[literal] ?? 0) + 1
    counts[literal] = count
    const pattern = literals[literal] ?? ''
    if (count <= matchesMax) found.push({ start, end: start + pattern.length, pattern })
  })
  return found
}
