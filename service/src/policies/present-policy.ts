import type {
  Policy as PolicyOnWire,
  PolicySummary,
  PolicyVersion,
} from '@gatehouse/contract/policy'

import { toSeconds } from '#platform/clock.ts'

import type { PolicySummaryRow } from './policy-store.ts'
import { contentOf, hasUnpublishedChanges, type Policy, type Version } from './policy.ts'

export const presentSummary = (policy: PolicySummaryRow): PolicySummary => ({
  id: policy.id,
  object: 'organization.policy',
  name: policy.name,
  description: policy.description,
  state: policy.state,
  revision: policy.revision,
  current_version: policy.current_version,
  has_unpublished_changes: hasUnpublishedChanges(policy),
  managed_by: policy.managed_by,
  created_at: toSeconds(policy.created_at),
  updated_at: toSeconds(policy.updated_at),
})

/** `current` is the version the policy has published, if any. */
export const presentPolicy = (policy: Policy, current: Version | undefined): PolicyOnWire => ({
  ...presentSummary(policy),
  draft: { ...contentOf(policy), base_version: policy.base_version },
  published: current ? presentVersion(current, current.version) : null,
})

export const presentVersion = (version: Version, currentVersion: number | null): PolicyVersion => ({
  id: version.id,
  object: 'organization.policy.version',
  version: version.version,
  ...contentOf(version),
  sha256: version.sha256.toString('hex'),
  published_at: toSeconds(version.published_at),
  current: version.version === currentVersion,
})
