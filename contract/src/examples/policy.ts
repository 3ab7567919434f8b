import type * as contract from '../policy.ts'
import { type ExampleOf, ids, morning } from './example.ts'

const content: contract.PolicyContent = {
  rule: `cel: text.matches("[a-z]{1,64}@example[.]com")`,
  direction: 'request',
  mode: 'monitoring',
  scope: 'organization',
  project_ids: [],
  match_threshold_basis_points: 7500,
}

const drafted: contract.Policy = {
  id: ids.policy,
  object: 'organization.policy',
  name: 'No customer data',
  description: 'Keeps personal data inside the organization.',
  state: 'draft',
  revision: 1,
  current_version: null,
  has_unpublished_changes: true,
  managed_by: null,
  created_at: morning,
  updated_at: morning,
  draft: { ...content, base_version: null },
  published: null,
}

const version: contract.PolicyVersion = {
  id: ids.version,
  object: 'organization.policy.version',
  version: 1,
  ...content,
  sha256: '5d41402abc4b2a76b9719d911017c592ae1f4d3b8c6e7f90a1b2c3d4e5f60718',
  published_at: morning + 60,
  current: true,
}

const live: contract.Policy = {
  ...drafted,
  state: 'monitoring',
  revision: 2,
  current_version: 1,
  has_unpublished_changes: false,
  updated_at: morning + 60,
  draft: { ...content, base_version: 1 },
  published: version,
}

const { draft: _, published: __, ...summary } = live

const rollout: contract.PolicyRollout = {
  object: 'organization.policy.rollout',
  policy_id: ids.policy,
  current_version: 1,
  version_in_force: 1,
  policy_epoch: 12,
  is_applied: true,
  processes: { live: 3, applied: 3, pending: 0, failed: 0, silent: 0 },
  versions: [{ version: 1, processes: 3 }],
}

const page = { object: 'list', has_more: false } as const
const params = { policy_id: ids.policy }
const versionParams = { policy_id: ids.policy, version: '1' }

export const policyExamples = {
  listPolicies: {
    query: { limit: '20' },
    answer: { ...page, data: [summary], first_id: ids.policy, last_id: ids.policy },
  } satisfies ExampleOf<typeof contract.listPolicies>,
  createPolicy: {
    body: {
      name: drafted.name,
      description: drafted.description,
      rule: content.rule,
      direction: 'request',
      scope: 'organization',
      match_threshold_basis_points: 7500,
    },
    answer: drafted,
  } satisfies ExampleOf<typeof contract.createPolicy>,
  retrievePolicy: { params, answer: live } satisfies ExampleOf<typeof contract.retrievePolicy>,
  updatePolicy: {
    params,
    body: { revision: 1, name: 'No personal data' },
    answer: { ...drafted, name: 'No personal data', revision: 2, updated_at: morning + 30 },
  } satisfies ExampleOf<typeof contract.updatePolicy>,
  publishPolicy: {
    params,
    query: { wait: 'applied' },
    body: { revision: 1 },
    answer: { ...live, rollout },
  } satisfies ExampleOf<typeof contract.publishPolicy>,
  pausePolicy: {
    params,
    body: { revision: 2 },
    answer: { ...live, state: 'paused', revision: 3, updated_at: morning + 120 },
  } satisfies ExampleOf<typeof contract.pausePolicy>,
  resumePolicy: {
    params,
    body: { revision: 3 },
    answer: { ...live, revision: 4, updated_at: morning + 180 },
  } satisfies ExampleOf<typeof contract.resumePolicy>,
  deletePolicy: {
    params,
    query: { revision: '4' },
    answer: { id: ids.policy, object: 'organization.policy.deleted', deleted: true },
  } satisfies ExampleOf<typeof contract.deletePolicy>,
  listPolicyVersions: {
    params,
    query: { limit: '20' },
    answer: { ...page, data: [version], first_id: ids.version, last_id: ids.version },
  } satisfies ExampleOf<typeof contract.listPolicyVersions>,
  retrievePolicyVersion: {
    params: versionParams,
    answer: version,
  } satisfies ExampleOf<typeof contract.retrievePolicyVersion>,
  restorePolicyVersion: {
    params: versionParams,
    body: { revision: 4 },
    answer: { ...live, revision: 5, updated_at: morning + 240 },
  } satisfies ExampleOf<typeof contract.restorePolicyVersion>,
  readPolicyRollout: {
    params,
    answer: rollout,
  } satisfies ExampleOf<typeof contract.readPolicyRollout>,
}
