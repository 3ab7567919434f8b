import type { Findings, CheckedCall } from '#inference/enforcement/findings.ts'
import type { QuestionsOf } from '#limits/limit-questions.ts'
import type { AskForCall } from '#moderation/guardrails/create-guardrails.ts'
import type { GuardrailFailure } from '#moderation/guardrails/guardrail-failure.ts'
import type { Guardrail } from '#moderation/guardrails/guardrail.ts'
import type { GuardrailQuestion } from '#moderation/guardrails/question.ts'
import type { GuardrailDecision } from '#moderation/guardrails/read-reply.ts'
import type { Clock } from '#platform/clock.ts'
import { createUuid } from '#platform/id.ts'

import { reportGuardrail } from './report-guardrails.ts'

/** What the guardrails of all calls share. */
export type GuardrailDeps = { askGuardrail: AskForCall; now: Clock }

export type GuardedCall = {
  call: CheckedCall
  /** As the catalogue names it. */
  model: string
  findings: Findings
  questions: Pick<QuestionsOf, 'guardrail'>
}

type Asked = Pick<GuardrailQuestion, 'direction' | 'texts' | 'isLast'>

/** What a guardrail has said, before it is known what comes of it. */
export type GuardrailVerdict = {
  readonly outcome: GuardrailDecision | { kind: 'failed'; failure: GuardrailFailure }
  readonly tookMs: number
}

/** Asks guardrails for one call, and reports what they decide. */
export function createAskingForCall(
  { askGuardrail, now }: GuardrailDeps,
  { call, model, findings, questions }: GuardedCall,
) {
  const { organizationId, projectId } = call.principal

  /** Throws where the organization has had the operator's guardrails asked too often, and for the reason of the signal. */
  async function ask(guardrail: Guardrail, asked: Asked, signal: AbortSignal) {
    // An organization's own is no concern of others.
    const isShared = guardrail.id === null
    // A call that was admitted is not ended for the questions that its answer raises.
    if (isShared && asked.direction === 'response') questions.guardrail.add(1)
    else if (isShared) await questions.guardrail.begin(1)
    const startedAtMs = performance.now()
    const id = createUuid(now())
    const call_ = { organizationId, projectId, requestId: call.requestId, model }
    const outcome = await askGuardrail(guardrail, { id, ...call_, ...asked }, signal)
    return { outcome, tookMs: performance.now() - startedAtMs } satisfies GuardrailVerdict
  }

  function report(
    guardrail: Guardrail,
    direction: Asked['direction'],
    { outcome, tookMs }: GuardrailVerdict,
  ) {
    const code = outcome.kind === 'failed' ? outcome.failure.problem : outcome.code
    const reported = { direction, action: outcome.kind, code, tookMs }
    reportGuardrail(findings.guardrails, guardrail, reported)
  }

  return { ask, report }
}
export type AskingForCall = ReturnType<typeof createAskingForCall>

/** Whether a text passes about which this guardrail has not decided. */
export const mayPass = ({ onError }: Guardrail, { isMisconfigured }: GuardrailFailure) =>
  onError === 'allow' && !isMisconfigured
