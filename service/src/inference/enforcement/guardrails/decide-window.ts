import type { Findings } from '#inference/enforcement/findings.ts'
import { GuardrailFailure } from '#moderation/guardrails/guardrail-failure.ts'
import type { Guardrail } from '#moderation/guardrails/guardrail.ts'
import type { ApiError } from '#platform/api-error.ts'

import type { WindowDecision } from './answer-stage.ts'
import type { AnswerWindow } from './answer-windows.ts'
import { type AskingForCall, type GuardrailVerdict, mayPass } from './ask-guardrails.ts'
import { answerBlockedBy, answerUndecided } from './guardrail-refusals.ts'

/** What guardrails are asked about a window. */
export const questionAbout = ({ from, text, newFrom, isLast }: AnswerWindow) =>
  ({
    direction: 'response',
    texts: [{ role: 'assistant', text, newFrom: newFrom - from }],
    isLast,
  }) as const

export type Deciding = {
  enforcing: readonly Guardrail[]
  asking: AskingForCall
  findings: Findings
}

/** Asks all guardrails about a window at once: one after the other, each would hold the answer back anew. */
export async function decideWindow(
  { enforcing, asking, findings }: Deciding,
  window: AnswerWindow,
  signal: AbortSignal,
): Promise<readonly WindowDecision[]> {
  const question = questionAbout(window)
  return Promise.all(
    enforcing.map(async (guardrail) =>
      toDecision(await asking.ask(guardrail, question, signal), { guardrail, asking, findings }),
    ),
  )
}

type Decided = Omit<Deciding, 'enforcing'> & { guardrail: Guardrail }

function toDecision(verdict: GuardrailVerdict, decided: Decided): WindowDecision {
  const { guardrail, asking, findings } = decided
  const { outcome, tookMs } = verdict
  if (outcome.kind === 'failed') {
    const error = fail(outcome.failure, tookMs, decided)
    return error ? { kind: 'end', toError: () => error } : { kind: 'pass' }
  }
  asking.report(guardrail, 'response', verdict)
  switch (outcome.kind) {
    case 'allow':
      return { kind: 'pass' }
    case 'block':
      return { kind: 'end', toError: () => answerBlockedBy(findings, guardrail, outcome.reason) }
    case 'rewrite':
      return {
        kind: 'rewrite',
        edits: outcome.edits[0] ?? [],
        onUnwritable(error) {
          if (!(error instanceof GuardrailFailure)) throw error
          const isOwn = guardrail.id !== null
          return fail(isOwn ? error.asOfOrganization() : error, tookMs, decided)
        },
      }
  }
}

/** Why an answer ends about which a guardrail has not decided; null where it goes on as it is. */
function fail(
  failure: GuardrailFailure,
  tookMs: number,
  { guardrail, asking }: Decided,
): ApiError | null {
  asking.report(guardrail, 'response', { outcome: { kind: 'failed', failure }, tookMs })
  return mayPass(guardrail, failure) ? null : answerUndecided(guardrail, failure)
}
