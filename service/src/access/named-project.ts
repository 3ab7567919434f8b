import type { Endpoint } from '@gatehouse/contract/endpoint'

import type { Principal } from '#http/principal.ts'
import { ApiError, notFound } from '#platform/api-error.ts'
import type { Db } from '#platform/database.ts'

import { findTenancy, type Tenancy } from './credential-store.ts'
import type { ShareParts } from './labels/share-parts.ts'
import type { LookupCache } from './lookup-cache.ts'
import { requirePermission } from './unauthorized.ts'

export type TenancyDeps = { db: Db; tenancies: LookupCache<Tenancy>; shareParts: ShareParts }

/** Ids are much shorter; this is what callers may send as one. */
export const idMaxLength = 200

/** An organization with one of its projects, `null` being the default one. */
export async function findKnownTenancy(
  { db, tenancies, shareParts }: TenancyDeps,
  organizationId: string,
  projectId: string | null,
): Promise<Tenancy | null> {
  // A header can be 16 KiB long: a value too long to be an id is neither looked up nor cached.
  if (projectId !== null && projectId.length > idMaxLength) throw notFound('project')
  const key = JSON.stringify([organizationId, projectId])
  const known = tenancies.peek(key)
  if (known !== undefined) return known
  const find = async () => {
    const found = await findTenancy(db, organizationId, projectId)
    return found && shareParts(found)
  }
  return (await tenancies.get(key, find)) ?? null
}

export const hasActiveProject = ({ project_id, project_status }: Tenancy) =>
  project_id !== null && project_status !== 'archived'

/** Refuses a project key that is sent with the name of another project, in the header X-Policy-Project. */
export const createProjectCheck =
  (deps: TenancyDeps) =>
  async (endpoint: Endpoint, principal: Principal, named: string): Promise<Principal> => {
    if (principal.kind !== 'project_key' || principal.projectId === named) return principal
    // Before the lookup: a caller without the permission must not learn which projects exist.
    requirePermission(endpoint, principal)
    const tenancy = await findKnownTenancy(deps, principal.organizationId, named)
    if (!tenancy || !hasActiveProject(tenancy)) throw notFound('project')
    throw new ApiError(
      'wrong_project',
      'The header X-Policy-Project names another project than that of the key; remove the header.',
    )
  }
