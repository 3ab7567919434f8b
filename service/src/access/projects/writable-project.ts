import { findOverride } from '#access/limit-overrides/override-store.ts'
import { requireWritable, type WritingCaller } from '#access/managed/require-writable.ts'
import type { Announce } from '#audit/announce.ts'
import type { Tx } from '#platform/database.ts'

import { presentProject } from './present-project.ts'
import type { ProjectRow } from './project-store.ts'

/** The project, which the caller has locked, if the request may change it for its set; else 409. */
export async function requireWritableProject(
  tx: Tx,
  deps: { announce: Announce },
  caller: WritingCaller,
  project: ProjectRow,
): Promise<ProjectRow> {
  const { organization_id: organizationId, id } = project
  const managed_by = await requireWritable(tx, deps, caller, {
    table: 'project',
    id,
    managedBy: project.managed_by,
    async present(set) {
      const limits = await findOverride(tx, { organizationId, scope: 'project', scopeId: id })
      return presentProject({ ...project, managed_by: set }, limits)
    },
  })
  return { ...project, managed_by }
}
