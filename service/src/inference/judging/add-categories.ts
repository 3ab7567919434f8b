import type { EndingTerms } from '#inference/gateway/configured-call.ts'
import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import { windowLengthMost } from '#policies/rules/score.ts'

/**
 * The rules of an answer, and for each category one that ends it where the category's score is reached. Those rules come after
 * all others of the set, of which there are `ruleCount`, and their atoms after the scores that the rules ask for.
 */
export function addCategories(
  rules: AnswerRules,
  categories: readonly string[],
  ruleCount: number,
): AnswerRules {
  const added = categories.map((_, number) => ({
    index: ruleCount + number,
    isEnforcing: true,
    isError: false,
    formula: { kind: 'score' as const, atom: rules.scores.length + number },
  }))
  return {
    ...rules,
    rules: [...rules.rules, ...added],
    hold: holdOf(rules),
  }
}

/** What the rules hold and what a window holds are the same characters, the last ones. */
function holdOf({ hold }: AnswerRules): number | 'full' {
  if (hold === 'full') return hold
  return hold === 'none' ? windowLengthMost : Math.max(hold, windowLengthMost)
}

/** The rules of an answer, and one with this number that ends it where a term of the denylist begins. */
export function addTerms(
  rules: AnswerRules,
  terms: EndingTerms | null,
  index: number,
): AnswerRules {
  if (!terms) return rules
  const added = { index, isEnforcing: true, isError: false, formula: { kind: 'term' as const } }
  return {
    ...rules,
    rules: [...rules.rules, added],
    scanTerms: terms.scan,
    hold: holdWith(rules, terms.longest - 1),
  }
}

function holdWith({ hold }: AnswerRules, terms: number): number | 'full' {
  if (hold === 'full') return hold
  return hold === 'none' ? terms : Math.max(hold, terms)
}
