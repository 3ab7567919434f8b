import type { Check } from '#inference/enforcement/check.ts'
import { locateMatches } from '#inference/enforcement/locate-matches.ts'
import { noteMatches } from '#inference/enforcement/note-matches.ts'
import { requestBlocked } from '#inference/enforcement/refusals.ts'
import type { RuleOutcome } from '#policies/rules/rule-set.ts'

import { evaluate } from './evaluate.ts'

/** Rules of policies that need nothing but the texts and the facts of a call. */
export const exactRules: Check = {
  name: 'exact rules',
  async beforeHold(checked) {
    const { findings, set, open, texts } = checked
    if (set.rules.length === 0) return null
    const outcomes = await evaluate(checked, open.exact())
    const first = noteMatches(findings, outcomes, 'request')
    const matching = new Set(outcomes.filter(isFound).map(({ rule }) => rule))
    if (matching.size > 0) await locateMatches({ ...checked, texts: texts.text }, matching)
    return first ? requestBlocked(findings, first) : null
  },
}

/** Whether a rule matches because of the text, and not because it could not be evaluated. */
const isFound = ({ isMatch, isError }: RuleOutcome) => isMatch && !isError
