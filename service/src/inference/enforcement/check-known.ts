import type { RequestTexts } from '#formats/texts/request-texts.ts'
import { NotAsked } from '#moderation/scorer.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'

import type { Checked } from './check.ts'
import { checks } from './checks.ts'
import type { CheckedCall } from './findings.ts'
import { noteUnjudged } from './note-matches.ts'
import { needsVerdict } from './plain-language/ask-judge.ts'

type Counted = { call: CheckedCall; checked: Checked; sets: readonly RuleSet[] }

/**
 * The checks after the hold, for a count of tokens. They ask no scorer and no judge: a count is free, so callers could use it
 * to keep those busy. Verdicts that are already known decide. The findings and the answer name who would have been asked.
 * Throws if the request is refused.
 */
export async function checkKnown({ call, checked, sets }: Counted, sent: RequestTexts) {
  const { findings } = checked
  for (const check of checks) {
    try {
      const refusal = await check.afterHold?.(checked, sent)
      if (refusal) throw refusal
    } catch (error) {
      if (!(error instanceof NotAsked)) throw error
      findings.unjudged.add(error.whom)
      // Without scores we cannot know whether the judge would have been asked.
      if (sets.some(({ rules }) => rules.some(needsVerdict))) findings.unjudged.add('judge')
    }
  }
  const watched = findings.watched.splice(0)
  noteUnjudged(
    findings,
    watched.flatMap(({ rules }) => rules),
  )
  const unjudged = (['scorer', 'judge'] as const).filter((each) => findings.unjudged.has(each))
  if (unjudged.length === 0) return
  const { configured } = findings
  const mode = configured?.isSampled ? `; mode=${configured.arm}` : ''
  call.addHeaders({ 'x-policy-decision': `allow${mode}; unjudged=${unjudged.join()}` })
}
