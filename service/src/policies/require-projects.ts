import { holdActiveProjects } from '#access/projects/project-store.ts'
import type { Tx } from '#platform/database.ts'

import { draftNotPublishable, unknownProject } from './refusals.ts'

/** Every project a caller names must be one of the organization's own, and active (422). */
export async function requireProjects(tx: Tx, organizationId: string, ids: readonly string[]) {
  const missing = await firstMissing(tx, organizationId, ids)
  if (missing !== -1) throw unknownProject(missing)
}

/** A draft can name a project that has been archived since (409). */
export async function requirePublishable(tx: Tx, organizationId: string, ids: readonly string[]) {
  const missing = await firstMissing(tx, organizationId, ids)
  if (missing !== -1) throw draftNotPublishable(ids[missing] ?? '')
}

async function firstMissing(tx: Tx, organizationId: string, ids: readonly string[]) {
  if (ids.length === 0) return -1
  const active = new Set(await holdActiveProjects(tx, organizationId, ids))
  return ids.findIndex((id) => !active.has(id))
}
