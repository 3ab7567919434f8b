import { revisionMax } from '@gatehouse/contract/policy'

import { ApiError } from '#platform/api-error.ts'

import type { RuleCheck } from './rule.ts'

/** Refuses a rule that could not be put in force (422). Absent and null pass: they keep the stored rule. */
export async function requireValidRule(check: RuleCheck, rule: string | null | undefined) {
  const problem = typeof rule === 'string' ? await check(rule) : null
  if (problem) {
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
