import { ApiError, notFound } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'

import { lockProject, type ProjectRow } from './project-store.ts'

/** Locks a project that may be changed: it exists in the organization (else 404) and is not archived (409). */
export async function lockActiveProject(
  tx: Tx,
  organizationId: string,
  id: string,
): Promise<ProjectRow> {
  const project = await lockProject(tx, organizationId, id)
  if (!project) throw notFound('project')
  if (project.status === 'archived') {
    throw new ApiError(
      'project_archived',
      'The project is archived and cannot be changed; use another project.',
    )
  }
  return project
}
