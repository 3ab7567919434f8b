import { z } from 'zod'

import { adminEndpoint } from './endpoint.ts'
import { integerInQuery, listOf, ListQuery } from './list.ts'
import { changesManaged, createsManaged, exemptFromSets, ManagedBy } from './managed.ts'
import { ProcessCounts } from './policy-gateway/process-counts.ts'
import { Revision, revisionMax, VersionNumber } from './revision.ts'
import { AnyId, idOf, storedText, Timestamp, trimmedText, Warnings } from './text.ts'
import { approvalErrors, glassBody, glassQuery } from './two-persons/break-glass.ts'

const BasisPoints = z.int().min(1).max(9999)

export const PolicyState = z.enum(['draft', 'monitoring', 'enforcing', 'paused'])
export type PolicyState = z.infer<typeof PolicyState>

/** The content of a policy: the part that is drafted, published and hashed. */
const content = {
  rule: z.string(),
  direction: z.enum(['request', 'response', 'both']),
  mode: z.enum(['monitoring', 'enforcing']),
  scope: z.enum(['organization', 'projects', 'unattached']),
  project_ids: z.array(z.string()),
  match_threshold_basis_points: BasisPoints.nullable(),
}
const PolicyContent = z.object(content)
export type PolicyContent = z.infer<typeof PolicyContent>

const PolicyDraft = z
  .object({
    ...content,
    base_version: VersionNumber.nullable().describe('The version the draft was last equal to.'),
  })
  .meta({ id: 'PolicyDraft' })

export const PolicyVersion = z
  .object({
    id: idOf('polver'),
    object: z.literal('organization.policy.version'),
    version: VersionNumber,
    ...content,
    sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .describe('The hash of the content: versions with equal content have equal hashes.'),
    published_at: Timestamp,
    current: z.boolean(),
  })
  .meta({ id: 'PolicyVersion' })
export type PolicyVersion = z.infer<typeof PolicyVersion>

/** A policy as lists show it: `draft` and `published` are absent, not null. */
const PolicySummary = z
  .object({
    id: idOf('pol'),
    object: z.literal('organization.policy'),
    name: z.string(),
    description: z.string(),
    state: PolicyState,
    revision: Revision,
    current_version: VersionNumber.nullable(),
    has_unpublished_changes: z.boolean(),
    managed_by: ManagedBy,
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'PolicySummary' })
export type PolicySummary = z.infer<typeof PolicySummary>

export const Policy = PolicySummary.extend({
  draft: PolicyDraft,
  published: PolicyVersion.nullable(),
}).meta({ id: 'Policy' })
export type Policy = z.infer<typeof Policy>

/** Which version the processes of the API run. A silent process does not count as having applied the change. */
const PolicyRollout = z
  .object({
    object: z.literal('organization.policy.rollout'),
    policy_id: idOf('pol'),
    current_version: VersionNumber.nullable(),
    version_in_force: VersionNumber.nullable().describe('null: never published, or paused.'),
    policy_epoch: z
      .int()
      .min(0)
      .describe('Increases with every change of what is in force in the organization.'),
    ...ProcessCounts,
    versions: z
      .array(z.object({ version: VersionNumber.nullable(), processes: z.int().min(1) }))
      .max(100)
      .describe('How many live processes run which version, the newest first; null: none.'),
  })
  .meta({ id: 'PolicyRollout' })
export type PolicyRollout = z.infer<typeof PolicyRollout>

const name = trimmedText(1, 80)
const description = trimmedText(0, 240)
const rule = storedText(1, 20_000)
const project_ids = z.array(AnyId).max(1000)

/** Absent or null means the default (docs/specification/policies.md#draft). */
const PolicyCreation = z
  .strictObject({
    name,
    description: description.nullish(),
    rule,
    direction: content.direction.nullish(),
    mode: content.mode.nullish(),
    scope: content.scope.nullish(),
    project_ids: project_ids.nullish(),
    match_threshold_basis_points: BasisPoints.nullish(),
  })
  .meta({ id: 'PolicyCreation' })
export type PolicyCreation = z.infer<typeof PolicyCreation>

/** Absent or null keeps the value; only the threshold can be cleared with null. */
const PolicyEdit = z
  .strictObject({
    revision: Revision,
    name: name.nullish(),
    description: description.nullish(),
    rule: rule.nullish(),
    direction: content.direction.nullish(),
    mode: content.mode.nullish(),
    scope: content.scope.nullish(),
    project_ids: project_ids.nullish(),
    match_threshold_basis_points: BasisPoints.nullish(),
  })
  .meta({ id: 'PolicyEdit' })
export type PolicyEdit = z.infer<typeof PolicyEdit>

const AtRevision = z.strictObject({ revision: Revision }).meta({ id: 'AtRevision' })

const Publication = glassBody({
  revision: Revision,
  force: z.boolean().optional().describe('Publish although examples fail.'),
})
  .refine(({ force, reason }) => !force || reason !== undefined, {
    path: ['reason'],
    error: 'must be given with force',
  })
  .meta({ id: 'PolicyPublication' })

const Resumption = glassBody({ revision: Revision }).meta({ id: 'PolicyResumption' })

const policies = '/v1/organization/policies'
/** The path of one policy. */
export const policyPath = `${policies}/:policy_id` as const
export const params = z.object({ policy_id: AnyId })
const versionParams = z.object({ policy_id: AnyId, version: integerInQuery(1, revisionMax) })

/** The errors of every change of an existing policy. */
const changeErrors = ['policy_not_found', 'revision_conflict', 'limit_reached'] as const

export const listPolicies = adminEndpoint({
  id: 'listPolicies',
  summary: 'List the policies of the organization',
  method: 'GET',
  path: policies,
  permission: 'policies.read',
  query: ListQuery,
  response: listOf(PolicySummary).meta({ id: 'PolicyList' }),
  isConditional: true,
  errors: ['invalid_cursor'],
})

export const createPolicy = adminEndpoint({
  id: 'createPolicy',
  summary: 'Create a policy as a draft; nothing is enforced before it is published',
  method: 'POST',
  path: policies,
  permission: 'policies.write',
  ...createsManaged,
  body: PolicyCreation,
  response: Policy,
  successStatus: 201,
  errors: ['invalid_scope', 'unknown_project', 'limit_reached'],
})

export const retrievePolicy = adminEndpoint({
  id: 'retrievePolicy',
  summary: 'Read a policy with its draft and its published version',
  method: 'GET',
  path: policyPath,
  permission: 'policies.read',
  params,
  response: Policy,
  errors: ['policy_not_found'],
})

export const updatePolicy = adminEndpoint({
  id: 'updatePolicy',
  summary: 'Edit the draft of a policy; what is published stays in force',
  method: 'PATCH',
  path: policyPath,
  permission: 'policies.write',
  ...changesManaged,
  params,
  body: PolicyEdit,
  response: Policy,
  errors: [...changeErrors, 'invalid_scope', 'unknown_project'],
})

export const publishPolicy = adminEndpoint({
  id: 'publishPolicy',
  summary: 'Publish the draft as the next version; every process applies it within 5 seconds',
  method: 'POST',
  path: `${policyPath}/publish`,
  permission: 'policies.publish',
  ...changesManaged,
  params,
  query: changesManaged.query.extend({
    wait: z
      .enum(['applied'])
      .optional()
      .describe('Answer when every live process has applied it, after 10 seconds at the latest.'),
  }),
  body: Publication,
  response: Policy.extend({
    rollout: PolicyRollout.optional().describe('Present when the call waited.'),
    warnings: Warnings.optional(),
  }).meta({ id: 'PublishedPolicy' }),
  errors: [
    ...changeErrors,
    'no_unpublished_changes',
    'draft_not_publishable',
    'examples_failing',
    'policy_evaluation_unavailable',
    ...approvalErrors,
  ],
})

export const pausePolicy = adminEndpoint({
  id: 'pausePolicy',
  summary: 'Take a policy out of force; only resuming puts it back',
  method: 'POST',
  path: `${policyPath}/pause`,
  permission: 'policies.publish',
  ...exemptFromSets,
  params,
  body: AtRevision,
  response: Policy,
  errors: [...changeErrors, 'policy_not_active'],
})

export const resumePolicy = adminEndpoint({
  id: 'resumePolicy',
  summary: 'Put a paused policy back in force with its published version',
  method: 'POST',
  path: `${policyPath}/resume`,
  permission: 'policies.publish',
  ...changesManaged,
  params,
  body: Resumption,
  response: Policy,
  errors: [...changeErrors, 'policy_not_paused', 'policy_not_evaluable', ...approvalErrors],
})

export const deletePolicy = adminEndpoint({
  id: 'deletePolicy',
  summary: 'Delete a policy; it is out of force everywhere within 5 seconds',
  method: 'DELETE',
  path: policyPath,
  permission: 'policies.write',
  ...changesManaged,
  params,
  query: glassQuery({
    ...changesManaged.query.shape,
    revision: integerInQuery(1, revisionMax).describe('The revision you last read.'),
  }),
  response: z
    .object({
      id: idOf('pol'),
      object: z.literal('organization.policy.deleted'),
      deleted: z.literal(true),
    })
    .meta({ id: 'DeletedPolicy' }),
  errors: ['policy_not_found', 'revision_conflict', ...approvalErrors],
})

export const listPolicyVersions = adminEndpoint({
  id: 'listPolicyVersions',
  summary: 'List the published versions of a policy, the newest first',
  method: 'GET',
  path: `${policyPath}/versions`,
  permission: 'policies.read',
  params,
  query: ListQuery.extend({
    order: z.enum(['asc', 'desc']).default('desc').describe('By number.'),
  }),
  response: listOf(PolicyVersion).meta({ id: 'PolicyVersionList' }),
  errors: ['invalid_cursor', 'policy_not_found'],
})

export const retrievePolicyVersion = adminEndpoint({
  id: 'retrievePolicyVersion',
  summary: 'Read one published version of a policy',
  method: 'GET',
  path: `${policyPath}/versions/:version`,
  permission: 'policies.read',
  params: versionParams,
  response: PolicyVersion,
  errors: ['policy_not_found', 'version_not_found'],
})

export const restorePolicyVersion = adminEndpoint({
  id: 'restorePolicyVersion',
  summary: 'Copy a published version into the draft; publishing stays a separate step',
  method: 'POST',
  path: `${policyPath}/versions/:version/restore`,
  permission: 'policies.write',
  ...changesManaged,
  params: versionParams,
  body: AtRevision,
  response: Policy,
  errors: [...changeErrors, 'version_not_found'],
})

export const readPolicyRollout = adminEndpoint({
  id: 'readPolicyRollout',
  summary: 'Read how many live processes run which version of a policy',
  method: 'GET',
  path: `${policyPath}/rollout`,
  permission: 'policies.read',
  params,
  response: PolicyRollout,
  isConditional: true,
  errors: ['policy_not_found'],
})
