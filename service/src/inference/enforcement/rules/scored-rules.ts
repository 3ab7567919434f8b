import type { Check } from '#inference/enforcement/check.ts'
import type { ScoreMap } from '#policies/rules/score.ts'

import { evaluate, refuseByRules } from './evaluate.ts'

/** Rules of policies that read the scores of categories. */
export const scoredRules: Check = {
  name: 'rules over scores',
  async afterHold(checked) {
    const { findings, set, open, moderated } = checked
    const { scores } = moderated
    if (set.categories.size === 0 || !scores) return null
    if (findings.features) findings.features.categories = listScores(scores)
    return refuseByRules(checked, await evaluate(checked, open.scored(scores)))
  },
}

const listScores = (scores: ScoreMap) =>
  [...scores].map(([category, score]) => ({ category, score }))
