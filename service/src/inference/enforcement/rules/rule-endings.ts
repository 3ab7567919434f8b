import type { Ending } from '#inference/enforcement/check.ts'
import { noteMatches } from '#inference/enforcement/note-matches.ts'
import { answerBlocked } from '#inference/enforcement/refusals.ts'
import type { AnswerRule, AnswerRules } from '#policies/rules/answer-rules.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'

export type RuleEnding = Ending & AnswerRule & { readonly rule: SetRule }

const known = new WeakMap<AnswerRules, AnswerRules<RuleEnding>>()

/** The rules of a set as endings of an answer. They are made once, because calls share them. */
export function toEndings(rules: AnswerRules, set: RuleSet): AnswerRules<RuleEnding> {
  const made = known.get(rules) ?? {
    ...rules,
    rules: rules.rules.flatMap((each) => {
      const rule = set.rules[each.index]
      return rule ? [toEnding(each, rule)] : []
    }),
  }
  known.set(rules, made)
  return made
}

const toEnding = (answerRule: AnswerRule, rule: SetRule): RuleEnding => ({
  ...answerRule,
  rule,
  toError({ findings, isError, scoreOf }) {
    const { index } = answerRule
    const outcome = { rule, index, score: scoreOf(rule), isMatch: true, isError }
    noteMatches(findings, [outcome], 'response')
    return answerBlocked(findings, { rule, isError })
  },
})
