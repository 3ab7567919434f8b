import type { AnswerFormula, AnswerRule, AnswerRules } from '#policies/rules/answer-rules.ts'
import { LiteralSet } from '#text/literal-set.ts'

import { createV8Patterns } from './v8-patterns.ts'

type Parts = {
  /** With the most units that a match can span. */
  patterns?: readonly (readonly [source: string, width: number])[]
  literals?: readonly string[]
  /** Enforcing rules; null is one that needs the whole answer. */
  formulas?: readonly (AnswerFormula | null)[]
  monitoring?: readonly AnswerFormula[]
}

/** Rules of an answer, written by hand. The monitoring ones come first. */
export function answerRulesOf(parts: Parts): AnswerRules {
  const { patterns = [], literals = [], formulas = [], monitoring = [] } = parts
  const rules = [
    ...monitoring.map((formula) => ({ isEnforcing: false, formula })),
    ...formulas.map((formula) => ({ isEnforcing: true, formula })),
  ].map((rule, index): AnswerRule => ({ index, ...rule }))
  const patternHold = Math.max(0, ...patterns.map(([, width]) => width))
  return {
    patterns: createV8Patterns(patterns.map(([source]) => source)),
    patternCount: patterns.length,
    literals: new LiteralSet(literals),
    scores: [],
    entities: [],
    hold: formulas.includes(null) ? 'full' : patternHold,
    patternHold,
    rules,
  }
}
