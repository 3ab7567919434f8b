import { z } from 'zod'

import { AllowedModels, AllowedModelsEdit, GivenAllowedModels } from './allowed-models.ts'
import { adminEndpoint } from './endpoint.ts'
import { LimitsEdit, OwnLimits } from './limits.ts'
import { listOf, ListQuery } from './list.ts'
import { changesManaged, createsManaged, exemptFromSets, ManagedBy } from './managed.ts'
import { GivenMonthlyBudget, MonthlyBudgetEdit, OwnMonthlyBudget } from './monthly-budget.ts'
import { AdminKeyPermission, Permission, ProjectKeyPermission } from './permission.ts'
import { keyLifetimeMaxSeconds } from './project.ts'
import { AnyId, idOf, Timestamp, trimmedText } from './text.ts'

/** The members that all keys share; times that are not set are absent, not null. */
const keyMembers = {
  id: idOf('key'),
  name: z.string(),
  redacted_value: z.string().regex(/^gate_(adm|prj)_[0-9A-Za-z]{2}\.\.\.[0-9A-Za-z]{4}$/),
  created_at: Timestamp,
  last_used_at: Timestamp.optional(),
  expires_at: Timestamp.optional(),
  permissions: z.array(Permission),
  managed_by: ManagedBy,
}

const OrganizationOwner = z.object({ id: idOf('org'), type: z.literal('organization') })
const MemberOwner = z.object({ id: idOf('mem'), type: z.literal('member') })

const value = z
  .string()
  .regex(/^gate_(adm|prj)_[0-9A-Za-z]{49}$/)
  .describe('The secret. It is shown only in this answer.')

const creation = {
  name: trimmedText(1, 80),
  expires_in_seconds: z.int().min(1).max(keyLifetimeMaxSeconds).nullish(),
}

export const AdminApiKey = z
  .object({
    object: z.literal('organization.admin_api_key'),
    ...keyMembers,
    owner: OrganizationOwner,
  })
  .meta({ id: 'AdminApiKey' })
export type AdminApiKey = z.infer<typeof AdminApiKey>

const AdminApiKeyCreation = z
  .strictObject({
    ...creation,
    permissions: z
      .array(AdminKeyPermission)
      .max(100)
      .describe('At most the permissions of the calling key. An empty list allows nothing.'),
  })
  .meta({ id: 'AdminApiKeyCreation' })

export const ProjectApiKey = z
  .object({
    object: z.literal('organization.project.api_key'),
    ...keyMembers,
    owner: z
      .union([OrganizationOwner, MemberOwner])
      .describe(
        'A key of a member stops working when the member is suspended, or leaves the project.',
      ),
    limits: OwnLimits,
    monthly_budget: OwnMonthlyBudget,
    allowed_models: AllowedModels,
  })
  .meta({ id: 'ProjectApiKey' })
export type ProjectApiKey = z.infer<typeof ProjectApiKey>

const ProjectApiKeyCreation = z
  .strictObject({
    ...creation,
    permissions: z.array(ProjectKeyPermission).max(100).nullish(),
    allowed_models: GivenAllowedModels,
    monthly_budget: GivenMonthlyBudget.nullish().describe(
      "By default there is none, but for a member's own key what the project prescribes.",
    ),
    own: z
      .boolean()
      .optional()
      .describe(
        'true: the key belongs to the member who makes it. false: to the organization. Default: true for callers who pass by their role in the project.',
      ),
  })
  .meta({ id: 'ProjectApiKeyCreation' })

const ProjectApiKeyEdit = z
  .strictObject({
    limits: LimitsEdit.optional(),
    monthly_budget: MonthlyBudgetEdit,
    allowed_models: AllowedModelsEdit,
  })
  .meta({ id: 'ProjectApiKeyEdit' })

const adminKeys = '/v1/organization/admin_api_keys'
const projectKeys = '/v1/organization/projects/:project_id/api_keys'

export const listAdminApiKeys = adminEndpoint({
  id: 'listAdminApiKeys',
  summary: 'List the administrator keys of the organization',
  method: 'GET',
  path: adminKeys,
  permission: 'admin_api_keys.read',
  query: ListQuery,
  response: listOf(AdminApiKey).meta({ id: 'AdminApiKeyList' }),
  errors: ['invalid_cursor'],
})

export const createAdminApiKey = adminEndpoint({
  id: 'createAdminApiKey',
  summary: 'Create an administrator key; the answer shows its secret once',
  method: 'POST',
  path: adminKeys,
  permission: 'admin_api_keys.write',
  ...createsManaged,
  body: AdminApiKeyCreation,
  response: AdminApiKey.extend({ value }).meta({ id: 'NewAdminApiKey' }),
  successStatus: 201,
  errors: ['limit_reached'],
})

export const deleteAdminApiKey = adminEndpoint({
  id: 'deleteAdminApiKey',
  summary: 'Revoke an administrator key; it stops working everywhere within 5 seconds',
  method: 'DELETE',
  path: `${adminKeys}/:key_id`,
  permission: 'admin_api_keys.write',
  ...exemptFromSets,
  params: z.object({ key_id: AnyId }),
  response: z
    .object({
      id: idOf('key'),
      object: z.literal('organization.admin_api_key.deleted'),
      deleted: z.literal(true),
    })
    .meta({ id: 'DeletedAdminApiKey' }),
  errors: ['api_key_not_found', 'last_admin_key'],
})

export const listProjectApiKeys = adminEndpoint({
  id: 'listProjectApiKeys',
  summary: 'List the API keys of a project',
  method: 'GET',
  path: projectKeys,
  permission: 'projects.read',
  orProjectRole: 'project_member',
  params: z.object({ project_id: AnyId }),
  query: ListQuery.extend({
    member_id: AnyId.optional().describe('Only the keys that belong to this member.'),
  }),
  response: listOf(ProjectApiKey).meta({ id: 'ProjectApiKeyList' }),
  errors: ['invalid_cursor', 'project_not_found'],
})

export const createProjectApiKey = adminEndpoint({
  id: 'createProjectApiKey',
  summary: 'Create an API key of a project; the answer shows its secret once',
  method: 'POST',
  path: projectKeys,
  permission: 'projects.write',
  orProjectRole: 'project_member',
  ...createsManaged,
  params: z.object({ project_id: AnyId }),
  body: ProjectApiKeyCreation,
  response: ProjectApiKey.extend({ value }).meta({ id: 'NewProjectApiKey' }),
  successStatus: 201,
  errors: ['project_not_found', 'project_archived', 'limit_reached'],
})

export const updateProjectApiKey = adminEndpoint({
  id: 'updateProjectApiKey',
  summary:
    'Set the limits, the monthly budget and the models of an API key; they hold everywhere within 5 seconds',
  method: 'PATCH',
  path: `${projectKeys}/:key_id`,
  permission: 'projects.write',
  orProjectRole: 'project_admin',
  ...changesManaged,
  params: z.object({ project_id: AnyId, key_id: AnyId }),
  body: ProjectApiKeyEdit,
  response: ProjectApiKey,
  errors: ['project_not_found', 'project_archived', 'api_key_not_found'],
})

export const deleteProjectApiKey = adminEndpoint({
  id: 'deleteProjectApiKey',
  summary: 'Revoke an API key of a project; it stops working everywhere within 5 seconds',
  method: 'DELETE',
  path: `${projectKeys}/:key_id`,
  permission: 'projects.write',
  orProjectRole: 'project_member',
  ...exemptFromSets,
  params: z.object({ project_id: AnyId, key_id: AnyId }),
  response: z
    .object({
      id: idOf('key'),
      object: z.literal('organization.project.api_key.deleted'),
      deleted: z.literal(true),
    })
    .meta({ id: 'DeletedProjectApiKey' }),
  errors: ['project_not_found', 'api_key_not_found'],
})
