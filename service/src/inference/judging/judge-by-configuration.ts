import type { ConfiguredCall } from '#inference/gateway/configured-call.ts'
import type { Blocked } from '#inference/replacing/replacement.ts'
import type { ApiError } from '#platform/api-error.ts'
import { type Passage, textOf } from '#text/passage.ts'
import { type Asker, runInTurns } from '#text/steps.ts'

import type { Judging } from './judge-request.ts'
import { locate } from './locate-matches.ts'
import { joinAnswer } from './verdicts/judge-texts.ts'
import type { Findings } from './verdicts/judgement.ts'
import { requestUnconfigured } from './verdicts/policy-refusal.ts'

/** Looks for the terms of the configuration in a request. Until something is found, the answer says that it is allowed. */
export async function judgeByTerms({ judgement, texts, asker }: Judging) {
  const { configured } = judgement
  if (!configured) return
  configured.announce('allow')
  const isDenied = await runInTurns(configured.readRequest(texts), asker)
  if (!isDenied) return
  await locate(judgement, texts.text, (said) => runDenied(configured, said, asker))
}

const runDenied = async (configured: ConfiguredCall, said: Passage, asker: Asker) =>
  runInTurns(configured.isDenied(said), asker)

/**
 * The error for a request that the configuration refuses, whatever else may be found out about it. Every other decision
 * waits: a category that is always blocked would still be refused.
 */
export function refuseByConfiguration(judging: Judging): ApiError | null {
  const { configured } = judging.judgement
  return configured?.decide().effectiveDecision === 'refuse' ? block(judging) : null
}

export function requireUnrefused(judging: Judging) {
  const refusal = refuseByConfiguration(judging)
  if (refusal) throw refusal
}

/** Throws where the configuration decides anything but to allow the request. */
export function requireAllowed(judging: Judging) {
  const { configured } = judging.judgement
  if (configured && configured.decide().effectiveDecision !== 'allow') throw block(judging)
}

function block({ judgement, texts }: Judging): ApiError | null {
  const { configured } = judgement
  if (!configured) return null
  const error = requestUnconfigured(judgement, configured)
  noteReplaceable(judgement, 'request', texts.lastMessage.map(textOf))
  return error
}

/** Says that other words are wanted for these texts, if it is the configuration that blocks them and it wants that. */
export function noteReplaceable(
  findings: Findings,
  direction: Blocked['direction'],
  texts: readonly string[],
) {
  const { configured, blockedBy } = findings
  if (!configured || !blockedBy?.isConfiguration) return
  const { effectiveDecision: action, triggeredCategories, terms } = configured.decide()
  if (action !== 'rewrite' && action !== 'summary') return
  findings.replaceable = {
    action,
    direction,
    text: joinAnswer(texts),
    categories: triggeredCategories,
    terms: terms.denylist,
  }
}
