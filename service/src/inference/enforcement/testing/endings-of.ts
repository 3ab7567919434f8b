import { toEndings } from '#inference/enforcement/rules/rule-endings.ts'
import { answerFacts } from '#policies/guard/testing/rule-set-of.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'

/** The rules of a set as they end an answer. */
export const endingsOf = (set: RuleSet) => toEndings(set.openAnswer(answerFacts), set)
