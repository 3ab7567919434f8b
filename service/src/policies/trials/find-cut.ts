import { type Steps, takeElsewhere } from '#platform/steps/steps.ts'
import type { AnswerFormula, AnswerRules, WindowAtom } from '#policies/rules/answer-rules.ts'
import type { EntityAtom } from '#policies/rules/formula.ts'
import { findInSteps } from '#policies/rules/searched-parts.ts'

import { findEntitiesInSteps, scanInSteps } from './find-in-steps.ts'

/**
 * Where the first rule that matches a complete answer cuts it: the place where the last match that the rule needs begins,
 * in normalised characters. A rule that needs the whole answer lets nothing of it pass.
 */
export function* findCut(
  rules: AnswerRules,
  text: string,
  startOfAtom: (atom: WindowAtom) => number,
): Steps<number> {
  const literalStarts = new Map<number, number>()
  yield* scanInSteps(rules.literals, text, (literal, start) => {
    literalStarts.set(literal, Math.min(start, literalStarts.get(literal) ?? start))
  })
  const knownStarts = yield* findSlowPatterns(rules, text)
  const entities = rules.entities.length > 0 ? yield* findEntitiesInSteps(text) : []

  /** Where the formula becomes true; Infinity: nowhere. */
  function* startOf(formula: AnswerFormula): Steps<number> {
    switch (formula.kind) {
      case 'and':
        return Math.max(0, ...(yield* startsOf(formula.parts)))
      case 'or':
        return Math.min(Infinity, ...(yield* startsOf(formula.parts)))
      case 'pattern':
        return (yield* startOfPattern(formula.pattern)) ?? Infinity
      case 'literal':
        return literalStarts.get(formula.literal) ?? Infinity
      case 'size':
        return startOfSize(text, formula.atLeast)
      case 'constant':
        return formula.value ? 0 : Infinity
      case 'score':
        return startOfNumber(formula.atom)
      case 'term':
        return Infinity // no rule of a policy has any
      case 'entity':
        return startOfCount(rules.entities[formula.atom])
    }
  }

  function* startsOf(formulas: readonly AnswerFormula[]): Steps<number[]> {
    const starts: number[] = []
    for (const formula of formulas) starts.push(yield* startOf(formula))
    return starts
  }

  function* startOfPattern(pattern: number): Steps<number | undefined> {
    if (knownStarts) return knownStarts.get(pattern)
    const sought = { set: rules.patterns, pattern, width: rules.patternHold }
    return (yield* findInSteps(sought, text, 0))?.start
  }

  function startOfNumber(number: number): number {
    const atom = rules.scores[number]
    return atom ? startOfAtom(atom) : Infinity
  }
  const startOfCount = (atom: EntityAtom | undefined) =>
    entities.filter(({ kind }) => kind === atom?.entity)[(atom?.atLeast ?? 0) - 1]?.start ??
    Infinity
  const formulas = rules.rules.flatMap(({ formula }) => formula ?? [])
  const starts = yield* startsOf(formulas)
  const first = formulas.length < rules.rules.length ? 0 : Math.min(...starts)
  return Number.isFinite(first) ? first : 0
}

/** Where each pattern starts first; null where patterns are quick, and are looked for when that is asked. */
function* findSlowPatterns(
  { patterns, patternCount, elsewhere }: AnswerRules,
  text: string,
): Steps<ReadonlyMap<number, number> | null> {
  if (!elsewhere?.isNeeded) return null
  const findHere = () =>
    Array.from({ length: patternCount }, (_, number) => ({
      number,
      start: patterns.find(number, text, 0)?.start ?? Infinity,
    }))
  const found = yield* takeElsewhere<readonly { number: number; start: number }[]>(
    findHere,
    (asker) => elsewhere.findFirst(text, 0, asker),
  )
  return new Map(found.map(({ number, start }) => [number, start]))
}

/** The offset of the character with which the text has `atLeast` of them. */
function startOfSize(text: string, atLeast: number): number {
  let count = 0
  let offset = 0
  for (const character of text) {
    if (++count >= atLeast) return offset
    offset += character.length
  }
  return atLeast <= 0 ? 0 : Infinity
}
