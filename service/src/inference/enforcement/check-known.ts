import { NotAsked } from '#moderation/scorer.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'

import type { Checked } from './check.ts'
import { checks } from './checks.ts'
import type { CheckedCall } from './findings.ts'
import type { SentRequest } from './guardrails/check-request.ts'
import { noteUnjudged } from './note-matches.ts'
import { needsVerdict } from './plain-language/ask-judge.ts'

type Counted = { call: CheckedCall; checked: Checked; sets: readonly RuleSet[] }

/**
 * The checks after the hold, for a count of tokens. It asks no scorer, no judge and no guardrail: it costs nothing, so it could be used to keep
 * them busy. What is known of its texts decides; the findings and the answer say who would have to be asked. Throws where the
 * request is refused.
 */
export async function checkKnown({ call, checked, sets }: Counted, sent: SentRequest) {
  const { findings } = checked
  for (const check of checks) {
    try {
      const refusal = await check.afterHold?.(checked, sent.texts, sent)
      if (refusal) throw refusal
    } catch (error) {
      if (!(error instanceof NotAsked)) throw error
      findings.unjudged.add(error.whom)
      // Without scores it is unknown whether the judge would have been asked.
      const isUnscored = error.whom !== 'guardrail'
      if (isUnscored && sets.some(({ rules }) => rules.some(needsVerdict)))
        findings.unjudged.add('judge')
    }
  }
  const watched = findings.watched.splice(0)
  noteUnjudged(
    findings,
    watched.flatMap(({ rules }) => rules),
  )
  const unjudged = (['scorer', 'judge', 'guardrail'] as const).filter((each) =>
    findings.unjudged.has(each),
  )
  if (unjudged.length === 0) return
  const { configured } = findings
  const mode = configured?.isSampled ? `; mode=${configured.arm}` : ''
  call.addHeaders({ 'x-policy-decision': `allow${mode}; unjudged=${unjudged.join()}` })
}
