import { z } from 'zod'

import { AllowedModels, AllowedModelsEdit, GivenAllowedModels } from './allowed-models.ts'
import { adminEndpoint } from './endpoint.ts'
import { LimitsEdit, OwnLimits } from './limits.ts'
import { listOf, ListQuery } from './list.ts'
import { changesManaged, createsManaged, ManagedBy } from './managed.ts'
import {
  GivenMonthlyBudget,
  MonthlyBudget,
  MonthlyBudgetEdit,
  OwnMonthlyBudget,
} from './monthly-budget.ts'
import { GivenLabels, LabelsEdit, OwnLabels } from './organization/labels.ts'
import { AnyId, idOf, Timestamp, trimmedText } from './text.ts'

/** Of a key, in seconds: ten years. */
export const keyLifetimeMaxSeconds = 315_360_000

const keyLifetime = z.int().min(1).max(keyLifetimeMaxSeconds).nullable()

/** What a project prescribes for the keys that its members make for themselves. */
export const KeyDefaults = z
  .object({
    expires_in_seconds: keyLifetime.describe(
      'How long they work unless less is asked for, and at most. null: as long as is asked for.',
    ),
    monthly_budget: MonthlyBudget.nullable().describe(
      'The budget of each, unless less is asked for, and at most. null: none.',
    ),
  })
  .meta({ id: 'KeyDefaults' })
export type KeyDefaults = z.infer<typeof KeyDefaults>

const KeyDefaultsEdit = z
  .strictObject({
    expires_in_seconds: keyLifetime.default(null),
    monthly_budget: GivenMonthlyBudget.nullable().default(null),
  })
  .meta({ id: 'KeyDefaultsEdit' })

export const Project = z
  .object({
    id: idOf('proj'),
    object: z.literal('organization.project'),
    name: z.string(),
    status: z.enum(['active', 'archived']),
    created_at: Timestamp,
    archived_at: Timestamp.nullable(),
    limits: OwnLimits,
    monthly_budget: OwnMonthlyBudget,
    allowed_models: AllowedModels,
    labels: OwnLabels,
    key_defaults: KeyDefaults.nullable().describe(
      'What is prescribed for the keys that members make for themselves. null: nothing.',
    ),
    managed_by: ManagedBy,
  })
  .meta({ id: 'Project' })
export type Project = z.infer<typeof Project>

const ProjectCreation = z
  .strictObject({
    name: trimmedText(1, 80),
    allowed_models: GivenAllowedModels,
    labels: GivenLabels,
  })
  .meta({ id: 'ProjectCreation' })

/** Absent keeps the value, and so does a `name` that is null. */
const ProjectEdit = z
  .strictObject({
    name: trimmedText(1, 80).nullish(),
    limits: LimitsEdit.optional(),
    monthly_budget: MonthlyBudgetEdit,
    allowed_models: AllowedModelsEdit,
    labels: LabelsEdit,
    key_defaults: KeyDefaultsEdit.nullish().describe(
      'Replaces all of them, for keys that are made from now on. null removes them; absent keeps them.',
    ),
  })
  .meta({ id: 'ProjectEdit' })
export type ProjectEdit = z.output<typeof ProjectEdit>

const projects = '/v1/organization/projects'
const params = z.object({ project_id: AnyId })

export const listProjects = adminEndpoint({
  id: 'listProjects',
  summary: 'List the projects of the organization, archived ones included',
  method: 'GET',
  path: projects,
  permission: 'projects.read',
  query: ListQuery,
  response: listOf(Project).meta({ id: 'ProjectList' }),
  errors: ['invalid_cursor'],
})

export const createProject = adminEndpoint({
  id: 'createProject',
  summary: 'Create a project',
  method: 'POST',
  path: projects,
  permission: 'projects.write',
  ...createsManaged,
  body: ProjectCreation,
  response: Project,
  successStatus: 201,
  errors: ['limit_reached'],
})

export const retrieveProject = adminEndpoint({
  id: 'retrieveProject',
  summary: 'Read a project',
  method: 'GET',
  path: `${projects}/:project_id`,
  permission: 'projects.read',
  orProjectRole: 'project_member',
  params,
  response: Project,
  errors: ['project_not_found'],
})

export const updateProject = adminEndpoint({
  id: 'updateProject',
  summary:
    "Rename a project, or set its limits, its monthly budget, its models and what its members' keys get",
  method: 'PATCH',
  path: `${projects}/:project_id`,
  permission: 'projects.write',
  orProjectRole: 'project_admin',
  ...changesManaged,
  params,
  body: ProjectEdit,
  response: Project,
  errors: ['project_not_found', 'project_archived'],
})

export const archiveProject = adminEndpoint({
  id: 'archiveProject',
  summary: 'Archive a project; its keys stop working everywhere within 5 seconds',
  method: 'POST',
  path: `${projects}/:project_id/archive`,
  permission: 'projects.write',
  ...changesManaged,
  params,
  response: Project,
  errors: ['project_not_found', 'default_project'],
})
