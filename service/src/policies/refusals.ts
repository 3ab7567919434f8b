import type { FailingExample } from '@gatehouse/contract/error-body'
import { revisionMax } from '@gatehouse/contract/revision'

import { ApiError } from '#platform/api-error.ts'

import type { RuleCheck } from './rule.ts'

/** Refuses a rule that could not be put in force (422). Absent and null pass: they keep the stored rule. */
export async function requireValidRule(
  check: RuleCheck,
  organizationId: string,
  rule: string | null | undefined,
) {
  if (typeof rule !== 'string') return
  const { problem } = await check(rule, organizationId)
  if (problem !== null) {
    throw new ApiError('invalid_parameter', `'body.rule' ${problem}.`, { param: 'body.rule' })
  }
}

export const revisionConflict = (current: number, param: 'body.revision' | 'query.revision') =>
  new ApiError(
    'revision_conflict',
    `The policy has changed since you read it: read it again, it is now at revision ${current}.`,
    { param },
  )

export const noMoreRevisions = () =>
  new ApiError(
    'limit_reached',
    `The policy has reached revision ${revisionMax}, the last one; create a new policy.`,
  )

export const versionNotFound = () =>
  new ApiError(
    'version_not_found',
    'The policy has no version with this number; only the last 200 versions are kept.',
  )

export const noUnpublishedChanges = (version: number | null) =>
  new ApiError(
    'no_unpublished_changes',
    `The draft equals version ${version}, which is published; edit the draft first.`,
  )

export const policyNotActive = (state: string) =>
  new ApiError(
    'policy_not_active',
    `The policy is in state '${state}'; only a monitoring or enforcing policy can be paused.`,
  )

export const policyNotPaused = (state: string) =>
  new ApiError(
    'policy_not_paused',
    `The policy is in state '${state}'; only a paused policy can be resumed.`,
  )

export const draftNotPublishable = (projectId: string) =>
  new ApiError(
    'draft_not_publishable',
    `The draft names the project '${projectId}', which is not active any more; remove it from the draft.`,
    { param: 'draft.project_ids' },
  )

export const ruleNotPublishable = (problem: string) =>
  new ApiError('draft_not_publishable', `The rule of the draft ${problem}; edit the draft.`, {
    param: 'draft.rule',
  })

export const examplesFailing = (failing: readonly FailingExample[]) =>
  new ApiError(
    'examples_failing',
    `The example with the index ${failing[0]?.index} does not come out as it should, or several do not; edit the draft or the examples, or publish with force.`,
    { failing },
  )

export const examplesNotEvaluable = (problem: string) =>
  new ApiError(
    'draft_not_publishable',
    `The examples cannot be tried, because the rule of the draft ${problem}; remove them, or publish with force.`,
    { param: 'draft.rule' },
  )

/** `what`: the draft or a version. */
export const policyNotEvaluable = (what: string, problem: string) =>
  new ApiError('policy_not_evaluable', `The rule of ${what} ${problem}.`)

export const evaluationTooSlow = () =>
  new ApiError(
    'policy_evaluation_unavailable',
    'Trying the rule took too long and was aborted; retry later, or send fewer texts.',
  )

/** The end of a sentence that begins with the name of a rule. */
export const lacksJudge = 'needs a judge model, which this gateway does not have'

export const tooManyJudged = (count: number, most: number) =>
  new ApiError(
    'limit_reached',
    `A project may have ${most} enforcing policies in plain language without a 'when:' line for each direction, and with this one there would be ${count}; pause or change others, or publish it in the mode 'monitoring'.`,
  )

export const patternsTooSlow = (sumMs: number, mostMs: number) =>
  new ApiError(
    'limit_reached',
    `The patterns of an organization's policies in force may take ${mostMs} ms together for 8 KB of text, and with this rule they would take ${sumMs} ms; pause other policies, or use fewer or quicker patterns.`,
    { param: 'draft.rule' },
  )

export const trialUnscored = () =>
  new ApiError(
    'policy_evaluation_unavailable',
    'The rule reads a score that its scorer did not give; retry later.',
  )

export const trialUnjudged = () =>
  new ApiError('policy_evaluation_unavailable', 'The judge did not give a verdict; retry later.')

export const invalidScope = () =>
  new ApiError(
    'invalid_scope',
    "'body.project_ids' must have 1 to 1000 ids with the scope 'projects', and none with any other scope.",
    { param: 'body.project_ids' },
  )

export const unknownProject = (index: number) =>
  new ApiError(
    'unknown_project',
    `'body.project_ids[${index}]' is not an active project of your organization.`,
    { param: `body.project_ids[${index}]` },
  )
