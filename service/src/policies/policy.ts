import { createHash } from 'node:crypto'

import type {
  PolicyContent,
  PolicyCreation,
  PolicyEdit,
  PolicyState,
} from '@gatehouse/contract/policy'

import { type Move, stateAfter } from './policy-state.ts'

/**
 * A policy is one draft, which can be edited, and its published versions, which cannot. Every change names
 * the revision its author has read and increments it, so that two authors cannot overwrite each other.
 * Draft and versions have content: rule, direction, mode, scope, projects and threshold. Name and
 * description belong to the policy itself and take effect at once. Contents are compared by their hash, in
 * which project ids are a set: their order does not matter.
 */
export type Policy = PolicyContent & {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly state: PolicyState
  readonly revision: number
  readonly current_version: number | null
  readonly published_sha256: Buffer | null
  readonly base_version: number | null
  readonly draft_sha256: Buffer
  /** Who last changed the draft: the id of a member or of a key. Null if that was before this was recorded. */
  readonly drafted_by: string | null
  /** Null: no set does. No revision counts it. */
  readonly managed_by: string | null
  readonly created_at: Date
  readonly updated_at: Date
}

/** Identifies a policy: ids are unique within their organization only. */
export type PolicyKey = { organizationId: string; policyId: string }

export type Version = PolicyContent & {
  readonly id: string
  readonly version: number
  readonly sha256: Buffer
  readonly published_at: Date
}

/** Picks the members of the content. */
export const contentOf = (from: PolicyContent): PolicyContent => ({
  rule: from.rule,
  direction: from.direction,
  mode: from.mode,
  scope: from.scope,
  project_ids: from.project_ids,
  match_threshold_basis_points: from.match_threshold_basis_points,
})

/** SHA-256 of the canonical form: JSON in UTF-8, members by name, project ids sorted, no white space. */
export function hashContent(content: PolicyContent): Buffer {
  const canonical = {
    direction: content.direction,
    match_threshold_basis_points: content.match_threshold_basis_points,
    mode: content.mode,
    project_ids: content.project_ids.toSorted(),
    rule: content.rule,
    scope: content.scope,
  }
  return createHash('sha256').update(JSON.stringify(canonical)).digest()
}

type NewPolicy = { id: string; managedBy: string | null; now: Date }

export function draftPolicy(creation: PolicyCreation, { id, managedBy, now }: NewPolicy): Policy {
  const content: PolicyContent = {
    rule: creation.rule,
    direction: creation.direction ?? 'both',
    mode: creation.mode ?? 'monitoring',
    scope: creation.scope ?? 'unattached',
    project_ids: [...new Set(creation.project_ids)],
    match_threshold_basis_points: creation.match_threshold_basis_points ?? null,
  }
  return {
    ...content,
    id,
    name: creation.name,
    description: creation.description ?? '',
    state: 'draft',
    revision: 1,
    current_version: null,
    published_sha256: null,
    base_version: null,
    draft_sha256: hashContent(content),
    drafted_by: null,
    managed_by: managedBy,
    created_at: now,
    updated_at: now,
  }
}

/** Returns the same object when nothing changes. Absent or null keeps a value; only the threshold is cleared by null. */
export function editPolicy(policy: Policy, edit: PolicyEdit, now: Date): Policy {
  const threshold = edit.match_threshold_basis_points
  const content: PolicyContent = {
    rule: edit.rule ?? policy.rule,
    direction: edit.direction ?? policy.direction,
    mode: edit.mode ?? policy.mode,
    scope: edit.scope ?? policy.scope,
    project_ids: edit.project_ids ? [...new Set(edit.project_ids)] : policy.project_ids,
    match_threshold_basis_points:
      threshold === undefined ? policy.match_threshold_basis_points : threshold,
  }
  const name = edit.name ?? policy.name
  const description = edit.description ?? policy.description
  const sha256 = hashContent(content)
  const hasSameContent = sha256.equals(policy.draft_sha256)
  if (hasSameContent && name === policy.name && description === policy.description) return policy
  const draft = hasSameContent ? {} : { ...content, draft_sha256: sha256 }
  return nextRevision({ ...policy, ...draft, name, description }, now)
}

/** Copies a version into the draft; returns the same object when the draft equals it already. */
export function restoreVersion(policy: Policy, version: Version, now: Date): Policy {
  const isEqual = version.sha256.equals(policy.draft_sha256)
  if (isEqual && policy.base_version === version.version) return policy
  const draft = { ...contentOf(version), draft_sha256: version.sha256 }
  return nextRevision({ ...policy, ...draft, base_version: version.version }, now)
}

type Hashes = Pick<Policy, 'published_sha256' | 'draft_sha256'>

export const hasUnpublishedChanges = ({ published_sha256, draft_sha256 }: Hashes) =>
  !published_sha256?.equals(draft_sha256)

/** Makes the draft the next version. Numbers are never reused, so the current version has the highest one. */
export function publish(policy: Policy, versionId: string, now: Date) {
  const version: Version = {
    ...contentOf(policy),
    id: versionId,
    version: (policy.current_version ?? 0) + 1,
    sha256: policy.draft_sha256,
    published_at: now,
  }
  const published = nextRevision(
    {
      ...policy,
      state: stateAfter(policy.state, 'publish', policy.mode) ?? policy.state,
      current_version: version.version,
      published_sha256: version.sha256,
      base_version: version.version,
    },
    now,
  )
  return { policy: published, version }
}

/** Pauses or resumes; null when the state does not allow it. */
export function move(
  policy: Policy,
  how: Exclude<Move, 'publish'>,
  current: Version | undefined,
  now: Date,
): Policy | null {
  const state = stateAfter(policy.state, how, current?.mode ?? policy.mode)
  return state && nextRevision({ ...policy, state }, now)
}

/** The same policy after one more change. */
export const nextRevision = (policy: Policy, now: Date): Policy => ({
  ...policy,
  revision: policy.revision + 1,
  updated_at: now,
})

/** The score in basis points from which a rule matches. */
export const thresholdOf = ({ match_threshold_basis_points: threshold }: PolicyContent) =>
  threshold ?? defaultThreshold

const defaultThreshold = 5000

/** The scope `projects` needs project ids, the other scopes must have none. */
export const isScopeValid = ({ scope, project_ids }: PolicyContent) =>
  (scope === 'projects') === project_ids.length > 0
