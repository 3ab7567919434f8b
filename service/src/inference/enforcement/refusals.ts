import type { DecidingPolicy } from '@gatehouse/contract/error-body'

import type { Refuser } from '#audit/policy-report.ts'
import type { ConfiguredCall } from '#inference/configured/configured-call.ts'
import type { Category } from '#moderation/categories.ts'
import { ApiError } from '#platform/api-error.ts'
import type { CompiledPolicy } from '#policies/compile.ts'
import { BeyondLimits } from '#policies/guard/guard-end.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'

import type { Findings } from './findings.ts'

/** Whether a policy, the configuration or a category has blocked the call. */
export const isBlock = (error: unknown): boolean =>
  error instanceof ApiError &&
  (error.code === 'policy_blocked' || error.code === 'moderation_blocked')

/** Whether the call ended because there was no verdict on it. */
export const isUnjudgedError = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 'policy_evaluation_unavailable'

/** What refused a call or ended its answer on behalf of the policies; null if nothing did, or something else. */
export function findRefuser(findings: Findings | null, error: unknown): Refuser | null {
  if (findings?.blockedBy) return findings.blockedBy
  if (!(error instanceof ApiError)) return null
  if (!error.policy && !isBlock(error) && !isUnjudgedError(error)) return null
  const { policy, code } = error
  return {
    policyId: policy?.policy_id ?? null,
    policyName: null,
    version: policy?.version ?? null,
    reasonCode: policy?.reason_code ?? code.toUpperCase(),
  }
}

/** The enforcing rule that decided against a call. `isError`: it counts as a match because it could not be evaluated. */
export type Decider = { rule: SetRule; isError: boolean }

/** 400 for a request that an enforcing rule matches. */
export const requestBlocked = (findings: Findings, decider: Decider) =>
  blocked(
    findings,
    decider,
    'does not allow this request. It was not sent to a model, and it costs nothing',
  )

/** The error by which an answer ends that an enforcing rule matches. */
export const answerBlocked = (findings: Findings, decider: Decider) =>
  blocked(findings, decider, 'does not allow this answer. What was generated is charged')

/** 400 for a request with an earlier answer that an enforcing rule matches. */
export const historyBlocked = (findings: Findings, decider: Decider, place: string) =>
  blocked(findings, decider, inHistory(place), place)

const inHistory = (place: string) =>
  `does not allow an earlier assistant message (${place}). The request was not sent to a model, and it costs nothing. Remove that message and retry`

function blocked(
  findings: Findings,
  { rule, isError }: Decider,
  what: string,
  param?: string,
): ApiError {
  const { policyId, policyName, version } = rule
  const reasonCode = isError ? 'RULE_ERROR' : 'REFUSE'
  findings.blockedBy = { policyId, policyName, version, reasonCode }
  return new ApiError('policy_blocked', `The policy ${policyId} of your organization ${what}.`, {
    policy: { policy_id: policyId, version, reason_code: reasonCode },
    ...(param !== undefined && { param }),
    contact: contactOf(findings.configured),
  })
}

/** Whom callers can ask about a block. It is no rule, so it does not depend on the rollout. */
export const contactOf = (configured: ConfiguredCall | null): string | undefined =>
  configured?.gateway.config.rules.contact

/** 400 for a request that the configuration of the policy gateway does not allow. */
export const requestUnconfigured = (findings: Findings, configured: ConfiguredCall) =>
  blockedByConfiguration(
    findings,
    configured,
    'does not allow this request. It was not sent to a model, and it costs nothing',
  )

/** 400 for a request with an earlier answer that the configuration does not allow. */
export const historyUnconfigured = (
  findings: Findings,
  configured: ConfiguredCall,
  place: string,
) => blockedByConfiguration(findings, configured, inHistory(place), place)

/** The error by which an answer ends that the configuration does not allow. */
export const answerUnconfigured = (findings: Findings, configured: ConfiguredCall) =>
  blockedByConfiguration(
    findings,
    configured,
    'does not allow this answer. What was generated is charged',
  )

function blockedByConfiguration(
  findings: Findings,
  configured: ConfiguredCall,
  what: string,
  param?: string,
): ApiError {
  const policy = refuseByConfiguration(findings)
  const { policy_id } = configured.gateway.config
  return new ApiError(
    'policy_blocked',
    `The configuration ${policy_id} of your organization's policy gateway ${what}.`,
    {
      ...(policy && { policy }),
      ...(param !== undefined && { param }),
      contact: contactOf(configured),
    },
  )
}

/** Null if only the always-blocked categories count for the call, or if the configuration allows it. */
function refuseByConfiguration(findings: Findings): DecidingPolicy | null {
  const { configured } = findings
  const outcome = configured?.decide()
  if (!configured?.isSampled || !outcome || outcome.effectiveDecision === 'allow') return null
  const { config, revision } = configured.gateway
  const { policy_id, name, refusal_replacement } = config
  const { reasonCode, effectiveDecision } = outcome
  configured.announce(effectiveDecision)
  findings.blockedBy = {
    policyId: policy_id,
    policyName: name,
    version: revision,
    reasonCode,
    isConfiguration: true,
  }
  const { escalation_path } = refusal_replacement
  return {
    policy_id,
    version: revision,
    reason_code: reasonCode,
    ...(effectiveDecision === 'escalate' && { escalation_path }),
  }
}

/** An answer that was ended because there was no verdict on it. Whether it is charged is known only when the call has ended. */
export class UnjudgedAnswer extends ApiError {
  constructor(message: string, cause: unknown) {
    super('policy_evaluation_unavailable', message, { cause })
  }

  /** The error that the caller gets. The cause is recorded where the failure happens. */
  tell(isCharged: boolean): ApiError {
    const charge = isCharged ? 'What was generated is charged.' : 'Nothing is charged.'
    return new ApiError(this.code, `${this.message} ${charge}`)
  }
}

/** Whether an answer got no verdict because of its own size, and not because something failed here. */
export const isBeyondLimits = (error: unknown): boolean =>
  error instanceof UnjudgedAnswer && error.cause instanceof BeyondLimits

/** The error for an answer that is beyond the limits of checking. */
export const answerBeyondLimits = () =>
  new UnjudgedAnswer(
    'The answer is too large to be judged, so it was ended.',
    new BeyondLimits('The answer is beyond the limits within which answers are judged.'),
  )

/**
 * People in distress read the messages about self-harm: they must learn that help exists, and find no reproach. The address is
 * a directory that covers all countries. Together with what comes before it, the text must not exceed the length of an error
 * message.
 */
const helpLine =
  'If you are thinking about harming yourself, you are not alone: https://findahelpline.com lists free, confidential help in your country. In an acute crisis, call the emergency services.'

/** 400 for a request with a category that is always blocked, or that the caller asked to block. */
export const requestModerated = (findings: Findings, category: Category) =>
  moderated(findings, category, 'This request was not sent to a model, and it costs nothing')

/** 400 for a request with an earlier answer of such a category. */
export const historyModerated = (findings: Findings, category: Category, place: string) =>
  moderated(findings, category, `This request was not sent or charged; remove ${place}`, place)

/** The error by which an answer with such a category ends. */
export const answerModerated = (findings: Findings, category: Category) =>
  moderated(findings, category, 'This answer was ended. What was generated is charged')

function moderated(findings: Findings, category: Category, what: string, param?: string): ApiError {
  if (!findings.triggered.includes(category)) findings.triggered.push(category)
  const policy = refuseByConfiguration(findings)
  return new ApiError(
    'moderation_blocked',
    `${what}: moderation found content of the category ${category}.${category === 'self-harm' ? ` ${helpLine}` : ''}`,
    {
      ...(policy && { policy }),
      ...(param !== undefined && { param }),
      contact: contactOf(findings.configured),
    },
  )
}

/** 400 if the operator refuses content that no scorer can read. */
export const partUnscored = (configured: ConfiguredCall | null) =>
  new ApiError(
    'moderation_blocked',
    'This request was not sent to a model, and it costs nothing: it has an image, a file or other data that moderation cannot read.',
    { contact: contactOf(configured) },
  )

/** 400 if the configuration of the policy gateway refuses such content, although the operator does not. */
export function partUnscoredByConfiguration(configured: ConfiguredCall): ApiError {
  const { config, revision } = configured.gateway
  configured.announce('refuse')
  return new ApiError(
    'moderation_blocked',
    `This request was not sent to a model, and it costs nothing: it has an image, a file or other data that moderation cannot read, which the configuration ${config.policy_id} of your organization's policy gateway refuses.`,
    {
      policy: {
        policy_id: config.policy_id,
        version: revision,
        reason_code: 'MODERATION_BLOCKED',
      },
      contact: contactOf(configured),
    },
  )
}

/** 400 if a scorer whose verdict is needed does not take the request, so that trying again would not help. */
export const requestUnscorable = () =>
  new ApiError(
    'moderation_blocked',
    'This request was not sent to a model, and it costs nothing: its texts are too long or too many for moderation, or they or its images are in a form that moderation does not accept.',
  )

/** 503 if a scorer whose verdict is needed does not answer. */
export const requestUnscored = () =>
  new ApiError(
    'policy_evaluation_unavailable',
    'The request could not be moderated at the moment, so it was not sent to a model; it costs nothing. Retry later.',
  )

/** 503 if an enforcing rule reads a score that the scorer of its category did not give. */
export const ruleUnscored = ({ policyId, version }: SetRule) =>
  new ApiError(
    'policy_evaluation_unavailable',
    `The policy ${policyId} of your organization could not be evaluated at the moment, so the request was not sent to a model; it costs nothing. Retry later.`,
    { policy: { policy_id: policyId, version, reason_code: 'RULE_ERROR' } },
  )

/** 503 until the operator has configured moderation of the always-blocked categories. */
export const moderationMissing = () =>
  new ApiError(
    'policy_evaluation_unavailable',
    'This gateway has no moderation that covers the categories that are always blocked, so it refuses calls to models; its operator has to configure it.',
  )

/** The error for an answer without a verdict, or without one in time. */
export const answerUnjudged = (cause: unknown) =>
  new UnjudgedAnswer(
    'The answer could not be judged by moderation or by the policies of your organization, so it was ended.',
    cause,
  )

/** 503 for calls in the scope of an enforcing policy whose rule this release cannot evaluate. */
export const cannotEnforce = ({
  policyId,
  version,
}: Pick<CompiledPolicy, 'policyId' | 'version'>) =>
  new ApiError(
    'policy_evaluation_unavailable',
    `The policy ${policyId} of your organization cannot be evaluated, so the request is refused; an administrator can pause or change the policy.`,
    { policy: { policy_id: policyId, version, reason_code: 'RULE_ERROR' } },
  )
