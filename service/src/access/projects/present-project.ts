import type { Project } from '@gatehouse/contract/project'

import { toSeconds } from '#platform/clock.ts'

import type { ProjectRow } from './project-store.ts'

export const presentProject = (row: ProjectRow): Project => ({
  id: row.id,
  object: 'organization.project',
  name: row.name,
  status: row.status,
  created_at: toSeconds(row.created_at),
  archived_at: row.archived_at && toSeconds(row.archived_at),
})
