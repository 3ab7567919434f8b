import { z } from 'zod'

import { adminEndpoint } from './endpoint.ts'
import { LimitsEdit, OwnLimits } from './limits.ts'
import { listOf, ListQuery } from './list.ts'
import { MonthlyBudgetEdit, OwnMonthlyBudget } from './monthly-budget.ts'
import { AnyId, idOf, Timestamp, trimmedText } from './text.ts'

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
  })
  .meta({ id: 'Project' })
export type Project = z.infer<typeof Project>

const ProjectCreation = z.strictObject({ name: trimmedText(1, 80) }).meta({ id: 'ProjectCreation' })

/** Absent keeps the value, and so does a `name` that is null. */
const ProjectEdit = z
  .strictObject({
    name: trimmedText(1, 80).nullish(),
    limits: LimitsEdit.optional(),
    monthly_budget: MonthlyBudgetEdit,
  })
  .meta({ id: 'ProjectEdit' })

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
  params,
  response: Project,
  errors: ['project_not_found'],
})

export const updateProject = adminEndpoint({
  id: 'updateProject',
  summary: 'Rename a project, or set its limits and its monthly budget',
  method: 'PATCH',
  path: `${projects}/:project_id`,
  permission: 'projects.write',
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
  params,
  response: Project,
  errors: ['project_not_found', 'default_project'],
})
