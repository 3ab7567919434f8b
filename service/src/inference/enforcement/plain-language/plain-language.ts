import type { Check } from '#inference/enforcement/check.ts'
import { evaluate, refuseByRules } from '#inference/enforcement/rules/evaluate.ts'

import { judgeRules } from './ask-judge.ts'
import { contentsOfRequest, contextOfRequest } from './judge-texts.ts'
import { watchRequest } from './watch-texts.ts'

/**
 * Rules in plain language. The judge is asked about enforcing rules now. The texts for monitoring rules are kept until the call
 * is over.
 */
export const plainLanguage: Check = {
  name: 'plain language',
  async afterHold(checked, sent) {
    const { findings, set, open, moderated, callJudge, asker } = checked
    const { scores } = moderated
    if (!set.needsJudge || !callJudge || !scores) return null
    const gates = await evaluate(checked, open.gates(scores))
    const enforcing = gates.filter(({ rule }) => rule.mode === 'enforcing')
    // A gate whose score is missing must not hide the match of another rule.
    const unknown = enforcing.filter(({ isUnscored }) => isUnscored)
    const asked = {
      rules: enforcing.filter(({ isMatch }) => isMatch),
      contents: contentsOfRequest({ ...sent, context: contextOfRequest(sent) }),
    }
    const judged = await judgeRules(callJudge, asked, asker.signal)
    const refusal = refuseByRules(checked, [...unknown, ...judged])
    if (!refusal) watchRequest({ findings, gates }, sent)
    return refusal
  },
}
