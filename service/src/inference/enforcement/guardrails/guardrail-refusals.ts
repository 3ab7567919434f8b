import type { Findings } from '#inference/enforcement/findings.ts'
import { contactOf, UnjudgedAnswer } from '#inference/enforcement/refusals.ts'
import type { GuardrailFailure } from '#moderation/guardrails/guardrail-failure.ts'
import type { Guardrail } from '#moderation/guardrails/guardrail.ts'
import { ApiError } from '#platform/api-error.ts'

const reasonCode = 'GUARDRAIL_BLOCKED'
/** With what stands around it, a message must not be longer than an error may be. */
const reasonMostCharacters = 80

/** 400 for a request that a guardrail blocks. */
export const requestBlockedBy = (findings: Findings, guardrail: Guardrail, reason: string | null) =>
  blockedBy(
    findings,
    guardrail,
    `does not allow this request${because(reason)}. It was not sent to a model, and it costs nothing.`,
  )

/** The error by which an answer ends that a guardrail blocks. */
export const answerBlockedBy = (findings: Findings, guardrail: Guardrail, reason: string | null) =>
  blockedBy(
    findings,
    guardrail,
    `does not allow this answer${because(reason)}. What was generated is charged.`,
  )

function blockedBy(findings: Findings, guardrail: Guardrail, what: string): ApiError {
  const { id, name } = guardrail
  findings.blockedBy = { policyId: id, policyName: name, version: null, reasonCode }
  return new ApiError(
    'policy_blocked',
    `The guardrail '${name}' of ${ownerOf(guardrail)} ${what}`,
    {
      policy: { policy_id: id ?? name, version: null, reason_code: reasonCode },
      contact: contactOf(findings.configured),
    },
  )
}

/** 503 for a request about which a guardrail has not decided. */
export const requestUndecided = (guardrail: Guardrail, cause: GuardrailFailure) =>
  new ApiError(
    'policy_evaluation_unavailable',
    `The guardrail '${guardrail.name}' of ${ownerOf(guardrail)} did not decide about this request, so it was not sent to a model; it costs nothing. ${cause.isMisconfigured ? 'An administrator has to correct it.' : 'Retry later.'}`,
    { cause },
  )

/** The error by which an answer ends about which a guardrail has not decided. */
export const answerUndecided = (guardrail: Guardrail, cause: GuardrailFailure) =>
  new UnjudgedAnswer(
    `The guardrail '${guardrail.name}' of ${ownerOf(guardrail)} did not decide about this answer, so it was ended.`,
    cause,
  )

const ownerOf = ({ id }: Guardrail) => (id === null ? 'this gateway' : 'your organization')

/** In the words of the guardrail, on one line and without what may end a line or change its direction. */
function because(reason: string | null): string {
  const line = (reason ?? '')
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .trim()
    .replace(/\.$/, '')
  if (line === '') return ''
  const points = Array.from(line)
  const shown =
    points.length > reasonMostCharacters
      ? `${points.slice(0, reasonMostCharacters).join('')}…`
      : line
  return `: ${shown}`
}
