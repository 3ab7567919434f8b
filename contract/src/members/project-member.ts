import { z } from 'zod'

import { adminEndpoint } from '../endpoint.ts'
import { listOf, ListQuery } from '../list.ts'
import { ProjectRole } from '../role.ts'
import { AnyId, idOf, Timestamp } from '../text.ts'

export const ProjectMember = z
  .object({
    id: idOf('mem'),
    object: z.literal('organization.project.member'),
    project_id: idOf('proj'),
    email: z.string(),
    name: z.string(),
    role: ProjectRole,
    created_at: Timestamp.describe('When the member joined the project.'),
  })
  .meta({ id: 'ProjectMember' })
export type ProjectMember = z.infer<typeof ProjectMember>

const ProjectMemberEdit = z.strictObject({ role: ProjectRole }).meta({ id: 'ProjectMemberEdit' })

const members = '/v1/organization/projects/:project_id/members'
const params = z.object({ project_id: AnyId, member_id: AnyId })

export const listProjectMembers = adminEndpoint({
  id: 'listProjectMembers',
  summary: 'List the members of a project',
  method: 'GET',
  path: members,
  permission: 'members.read',
  orProjectRole: 'project_member',
  params: z.object({ project_id: AnyId }),
  query: ListQuery,
  response: listOf(ProjectMember).meta({ id: 'ProjectMemberList' }),
  errors: ['invalid_cursor', 'project_not_found'],
})

export const setProjectMember = adminEndpoint({
  id: 'setProjectMember',
  summary: 'Take a member of the organization into a project, or change what the member is there',
  method: 'PUT',
  path: `${members}/:member_id`,
  permission: 'projects.write',
  orProjectRole: 'project_admin',
  params,
  body: ProjectMemberEdit,
  response: ProjectMember,
  errors: ['project_not_found', 'member_not_found', 'project_archived', 'limit_reached'],
})

export const deleteProjectMember = adminEndpoint({
  id: 'deleteProjectMember',
  summary:
    'Remove a member from a project; the keys that the member made for themself stop working everywhere within 5 seconds',
  method: 'DELETE',
  path: `${members}/:member_id`,
  permission: 'projects.write',
  orProjectRole: 'project_admin',
  params,
  response: z
    .object({
      id: idOf('mem'),
      object: z.literal('organization.project.member.deleted'),
      deleted: z.literal(true),
    })
    .meta({ id: 'DeletedProjectMember' }),
  errors: ['project_not_found', 'member_not_found'],
})
