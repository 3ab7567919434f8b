import { isAlwaysBlocked } from '#gateway-config/decide/categories.ts'
import type { Check, Ending } from '#inference/enforcement/check.ts'
import { answerModerated, answerUnconfigured } from '#inference/enforcement/refusals.ts'
import type { Category } from '#moderation/categories.ts'
import type { AnswerRules } from '#policies/rules/answer-rules.ts'

/** The always-blocked categories, and those that the caller or the configuration flags. */
export const moderation: Check = {
  name: 'moderation',
  beforeHold: ({ moderated }) => moderated.checkLocally(),
  afterHold: ({ moderated }, sent) => moderated.checkRemotely(sent),
  addEndings: (rules, { moderated }) => addCategories(rules, moderated.blocking),
}

/** Adds an ending for each category, for answers that reach its score. Their atoms come after those of the rules. */
export function addCategories(
  rules: AnswerRules<Ending>,
  categories: readonly Category[],
): AnswerRules<Ending> {
  const added = categories.map((category, number) =>
    toEnding(category, rules.scores.length + number),
  )
  return { ...rules, rules: [...rules.rules, ...added] }
}

const toEnding = (category: Category, atom: number): Ending => ({
  isEnforcing: true,
  isError: false,
  formula: { kind: 'score', atom },
  toError({ findings, facts }) {
    const { configured } = findings
    configured?.noteCategories([category])
    const isRefused = isAlwaysBlocked(category) || facts.categories.includes(category)
    return !configured || isRefused
      ? answerModerated(findings, category)
      : answerUnconfigured(findings, configured)
  },
})
