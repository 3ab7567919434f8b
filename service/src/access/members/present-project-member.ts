import type { ProjectMember } from '@gatehouse/contract/members/project-member'

import { toSeconds } from '#platform/clock.ts'

import type { ProjectMemberRow } from './project-member-store.ts'

export const presentProjectMember = (row: ProjectMemberRow): ProjectMember => ({
  id: row.id,
  object: 'organization.project.member',
  project_id: row.project_id,
  email: row.email,
  name: row.name,
  role: row.role,
  created_at: toSeconds(row.created_at),
})
