import { actorTypeOf } from '#audit/actor.ts'
import {
  buildCallEvent,
  type CallReport,
  type Event,
  operatorOrganizationId,
} from '#audit/event.ts'
import type { GatewayReport } from '#audit/policy-report.ts'
import type { Principal } from '#http/principal.ts'
import type { CountedQuotas } from '#limits/quotas/counted-quotas.ts'
import { toApiError } from '#platform/to-api-error.ts'
import type { Pinned } from '#policies-in-force/in-force.ts'

import { type CallTarget, targetNames } from './configured/call-target.ts'
import type { PolicySubject } from './configured/policy-subject.ts'
import { createFindings, type Findings } from './enforcement/findings.ts'
import { describeRedaction } from './enforcement/redaction/call-redaction.ts'
import { findRefuser } from './enforcement/refusals.ts'

/** Whose call it is, and which policies apply to it. */
export type CallOrigin = {
  requestId: string
  principal: Principal
  target: CallTarget
  /** Null if the call failed before they were known. */
  policies: Pinned | null
  /** Left out if the call failed before its headers were read. */
  policySubject?: PolicySubject
  counted?: CountedQuotas | null
  /** When its request arrived, on the clock of `performance.now()`. */
  arrivedAtMs: number
}
export type CallEnding = Pick<CallReport, 'model' | 'outcome' | 'refusal' | 'usage'> & {
  /** Null if the call ended before it was checked. */
  findings: Findings | null
  /** Why it did not complete. */
  error: unknown
  /** When the first of a streamed answer had left; undefined: nothing has. */
  firstLeftAtMs?: number | undefined
}

/** Builds the event of a call, and hands what is still to be judged of the call to monitoring. */
export type ToEvent = (call: CallOrigin, ending: CallEnding) => Event

/**
 * The audit event of a call, however it ended. Anonymous callers belong to no organization, so their events belong to the
 * operator.
 */
export function toCallEvent(call: CallOrigin, ending: CallEnding, at: Date): Event {
  const { requestId, principal, target, policies, policySubject, counted } = call
  const { kind, organizationId, projectId, projectLabels, credentialId } = principal
  const { type, projectLabel, userId } = describeCaller(principal)
  const { findings, error, firstLeftAtMs, ...result } = ending
  return buildCallEvent(
    {
      ...result,
      ...describeTimes(call, firstLeftAtMs),
      ...describeError(ending),
      organizationId: kind === 'anonymous' ? operatorOrganizationId : organizationId,
      requestId,
      projectId,
      projectLabel,
      projectLabels,
      actor: credentialId,
      actorType: type,
      userId,
      target: policySubject?.target ?? targetNames[target],
      user: policySubject?.user ?? null,
      quotaSubject: hasUserQuotas(policies) ? policySubject?.subject : null,
      quotas: counted,
      dataClassification:
        policies?.snapshot.gateway?.config.org_controls.data_classification ?? null,
      policies: {
        epoch: policies?.snapshot.epoch ?? null,
        refusedBy: findRefuser(findings, error),
        ...pickReported(findings ?? createFindings()),
      },
    },
    at,
  )
}

const describeTimes = ({ arrivedAtMs }: CallOrigin, firstLeftAtMs: number | undefined) => ({
  durationMs: Math.round(performance.now() - arrivedAtMs),
  ...(firstLeftAtMs !== undefined && { firstTokenMs: Math.round(firstLeftAtMs - arrivedAtMs) }),
})

/** The status of the error that ended a call, where the event does not say it as that of a refusal. */
function describeError({ outcome, refusal, error }: CallEnding) {
  const isError = outcome === 'failed' || outcome === 'blocked'
  return isError && !refusal && error !== undefined ? { status: toApiError(error).status } : {}
}

/** What the event of a call says of its caller beside the ids. */
export const describeCaller = (principal: Principal) => ({
  type: actorTypeOf(principal),
  projectLabel: principal.projectName,
  userId: principal.userId,
})

const hasUserQuotas = (policies: Pinned | null) =>
  policies?.snapshot.gateway?.config.org_controls.user_quotas === true

const pickReported = (findings: Findings) => {
  const { matches, foundIn, unevaluated, triggered, replacement } = findings
  const { isDegraded, isJudgeDegraded, unjudged, guardrails, hasUnscoredParts, features } = findings
  const redactions = findings.redacted ? describeRedaction(findings.redacted) : []
  const gateway = describeConfigured(findings)
  return {
    matches,
    foundIn,
    unevaluated,
    triggered,
    replacement,
    isDegraded,
    isJudgeDegraded,
    unjudged: [...unjudged],
    guardrails,
    hasUnscoredParts,
    redactions,
    features,
    gateway,
  }
}

function describeConfigured({ configured, replacement }: Findings): GatewayReport | null {
  if (!configured?.isSampled) return null
  const { config, revision } = configured.gateway
  const { decision, reasonCode, triggeredCategories, terms } = configured.decide()
  return {
    policyId: config.policy_id,
    policyName: config.name,
    revision,
    rolloutMode: configured.arm,
    decision,
    reasonCode,
    triggered: triggeredCategories,
    allowlistHits: terms.allowlist,
    denylistHits: terms.denylist,
    escalationPath: config.refusal_replacement.escalation_path,
    isReplaced: replacement !== null,
  }
}
