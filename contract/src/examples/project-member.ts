import type * as contract from '../members/project-member.ts'
import { type ExampleOf, ids, morning } from './example.ts'

const member: contract.ProjectMember = {
  id: ids.member,
  object: 'organization.project.member',
  project_id: ids.project,
  email: 'ada@example.com',
  name: 'Ada Lovelace',
  role: 'project_member',
  created_at: morning,
}
const params = { project_id: ids.project, member_id: ids.member }

export const projectMemberExamples = {
  listProjectMembers: {
    params: { project_id: ids.project },
    query: { limit: '20' },
    answer: {
      object: 'list',
      data: [member],
      has_more: false,
      first_id: ids.member,
      last_id: ids.member,
    },
  } satisfies ExampleOf<typeof contract.listProjectMembers>,
  setProjectMember: {
    params,
    body: { role: 'project_member' },
    answer: member,
  } satisfies ExampleOf<typeof contract.setProjectMember>,
  deleteProjectMember: {
    params,
    answer: { id: ids.member, object: 'organization.project.member.deleted', deleted: true },
  } satisfies ExampleOf<typeof contract.deleteProjectMember>,
}
