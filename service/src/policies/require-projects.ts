import { lockActiveProjects } from '#access/projects/project-store.ts'
import type { Tx } from '#platform/database.ts'

import { draftNotPublishable, unknownProject } from './refusals.ts'

/** Every project that a request names must be an active one of the organization, else 422. */
export async function requireProjects(tx: Tx, organizationId: string, ids: readonly string[]) {
  const missing = await findFirstMissing(tx, organizationId, ids)
  if (missing !== -1) throw unknownProject(missing)
}

/** Every project that a draft names must still be active when it is published, else 409. */
export async function requirePublishable(tx: Tx, organizationId: string, ids: readonly string[]) {
  const missing = await findFirstMissing(tx, organizationId, ids)
  if (missing !== -1) throw draftNotPublishable(ids[missing] ?? '')
}

/** The index of the first id that is no active project; -1 when there is none. */
async function findFirstMissing(tx: Tx, organizationId: string, ids: readonly string[]) {
  if (ids.length === 0) return -1
  const active = new Set(await lockActiveProjects(tx, organizationId, ids))
  return ids.findIndex((id) => !active.has(id))
}
