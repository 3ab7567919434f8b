import type { Endpoint } from '@gatehouse/contract/endpoint'
import type { Permission } from '@gatehouse/contract/permission'
import { includesProjectRole, type ProjectRole } from '@gatehouse/contract/role'

import { permissionDenied, requirePermission } from '#access/unauthorized.ts'
import type { Principal } from '#http/principal.ts'
import type { Tx } from '#platform/database.ts'

import { holdProjectRole } from './project-role-store.ts'

// By what right a caller acts in a project (docs/specification/members.md#members-of-projects). A caller with the
// permission of an endpoint needs no role; one with only the role may do less, and each endpoint says what.

/** `permission`: by the endpoint's permission. Otherwise by the role in the project that the endpoint takes instead. */
export type ProjectStanding = 'permission' | ProjectRole

type Caller = Pick<Principal, 'permissions' | 'member'>

/** Throws a 403 unless the caller has the permission of the endpoint or, in this project, the role that it takes instead. */
export function requireStanding(
  endpoint: Endpoint,
  caller: Caller,
  projectId: string | undefined,
): ProjectStanding {
  const { orProjectRole } = endpoint
  const permission = endpoint.permission as Permission
  if (!orProjectRole || !caller.member || caller.permissions.has(permission)) {
    requirePermission(endpoint, caller)
    return 'permission'
  }
  const held = caller.member.projectRoles.get(projectId ?? '')
  if (held && includesProjectRole(held, orProjectRole)) return held
  throw permissionDenied(
    permission,
    `You lack the permission ${permission}, and are not a ${orProjectRole} of this project.`,
  )
}

/**
 * As `requireStanding`, for a change: a role is read anew, because what a session carries may be some seconds old, and it
 * cannot be taken away before the transaction ends.
 */
export async function confirmStanding(
  tx: Tx,
  endpoint: Endpoint,
  caller: Pick<Principal, 'organizationId' | 'permissions' | 'member'>,
  projectId: string,
): Promise<ProjectStanding> {
  const standing = requireStanding(endpoint, caller, projectId)
  const { organizationId, permissions, member } = caller
  if (standing === 'permission' || !member) return standing
  const held = await holdProjectRole(tx, { organizationId, projectId, memberId: member.id })
  const projectRoles = new Map(held ? [[projectId, held]] : [])
  return requireStanding(endpoint, { permissions, member: { ...member, projectRoles } }, projectId)
}
