import type { PolicyTrialResults } from '@gatehouse/contract/policy-evaluation'

import { type Asker, finish, type Steps, takeElsewhere } from '#platform/steps/steps.ts'
import { joinPatterns } from '#policies/rules/pattern-search.ts'
import type { CompiledRule } from '#policies/rules/rule-program.ts'
import { findAllInSteps } from '#policies/rules/searched-parts.ts'
import { LiteralSet } from '#text/literal-set.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'
import type { PatternMatch, SearchElsewhere } from '#text/pattern-set.ts'

import { findEntitiesInSteps, type Normalised, scanInSteps } from './find-in-steps.ts'

type Found = PatternMatch & { pattern: string }
type Match = PolicyTrialResults['results'][number]['matches'][number]

const matchesMax = 50

/** Finds where the patterns, the literals and what `pii()` counts occur; the first 50, by their place in the text as it was sent. */
export function* createMatchFinder(
  rule: Pick<CompiledRule, 'patterns' | 'shapes' | 'literals' | 'entities'>,
  engine: PatternEngine,
): Steps<(normalised: Normalised) => Steps<Match[]>> {
  const { literals, entities } = rule
  const findPatterns = yield* createPatternFinder(rule, engine)
  const literalSet = yield* LiteralSet.buildInSteps(literals)
  return function* findMatches({ text, originalOffset }) {
    const found = yield* findLiterals(literalSet, literals, text)
    found.push(...(yield* findPatterns(text)))
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

/** Finds the matches of patterns, those of slow ones outside of the event loop. */
function* createPatternFinder(
  { patterns, shapes }: Pick<CompiledRule, 'patterns' | 'shapes'>,
  engine: PatternEngine,
): Steps<(text: string) => Steps<Found[]>> {
  const set = yield* joinPatterns(shapes, engine)
  const sought = patterns.map((pattern) => ({
    pattern,
    width: shapes.get(pattern)?.width ?? Infinity,
  }))
  const search = engine.elsewhere?.search(sought)

  function* findHere(text: string): Steps<Found[]> {
    const found: Found[] = []
    for (const [index, { pattern, width }] of sought.entries()) {
      const matches = yield* findAllInSteps({ set, pattern: index, width }, text, matchesMax)
      found.push(...matches.map((match) => ({ ...match, pattern })))
    }
    return found
  }
  async function findElsewhere(text: string, asker: Asker, { hits, findAll }: SearchElsewhere) {
    const found: Found[] = []
    for (const number of await hits([text], asker)) {
      const pattern = patterns[number] ?? ''
      const matches = await findAll(number, text, matchesMax, asker)
      found.push(...matches.map((match) => ({ ...match, pattern })))
    }
    return found
  }

  return (text) =>
    search?.isNeeded
      ? takeElsewhere(
          () => finish(findHere(text)),
          (asker) => findElsewhere(text, asker, search),
        )
      : findHere(text)
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
