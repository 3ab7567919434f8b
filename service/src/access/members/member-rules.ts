import type { MemberStatus } from '@gatehouse/contract/members/member'
import type { Permission } from '@gatehouse/contract/permission'
import { type Role, rolePermissions } from '@gatehouse/contract/role'

/**
 * Who changes a member, as these rules see it. A session that an administrator key has opened acts as that key. The operator's
 * commands may give every role.
 */
export type MemberChanger =
  | { kind: 'operator' }
  | { kind: 'member'; role: Role }
  | { kind: 'key'; permissions: ReadonlySet<Permission> }

/** A member before or after a change; null: there is none. */
type Standing = { role: Role; status: MemberStatus } | null

type Refusal =
  | { reason: 'owners_only' }
  | { reason: 'lacks_permission'; permission: Permission }
  | { reason: 'last_owner' }

/**
 * Why a member may not be changed in this way; null if it may. Owners are changed by owners only: a key or an administrator that
 * could make one would hold everything an owner holds. Without an active owner none could ever be made, so then a key that
 * manages administrator keys may. The number of active owners is that before the change.
 */
export function judgeMemberChange(
  { before, after }: { before: Standing; after: Standing },
  by: MemberChanger,
  activeOwners: number,
): Refusal | null {
  const concernsOwner = before?.role === 'owner' || after?.role === 'owner'
  if (concernsOwner && !mayChangeOwners(by, activeOwners)) return { reason: 'owners_only' }
  const lacking = after && gives(before, after) ? findLacking(by, after.role) : undefined
  if (lacking) return { reason: 'lacks_permission', permission: lacking }
  const isLast = isActiveOwner(before) && !isActiveOwner(after) && activeOwners <= 1
  return isLast ? { reason: 'last_owner' } : null
}

function mayChangeOwners(by: MemberChanger, activeOwners: number): boolean {
  if (by.kind === 'operator') return true
  if (by.kind === 'member') return by.role === 'owner'
  return activeOwners === 0 && by.permissions.has('admin_api_keys.write')
}

/** Whether the change gives a person a role that this person could not use before. */
const gives = (before: Standing, after: NonNullable<Standing>) =>
  before?.role !== after.role || (before.status === 'suspended' && after.status !== 'suspended')

/** A permission of the role that is not held by the one who gives it. Who may make owners is decided elsewhere. */
function findLacking(by: MemberChanger, role: Role): Permission | undefined {
  if (by.kind === 'operator' || role === 'owner') return undefined
  const held = by.kind === 'key' ? by.permissions : new Set(rolePermissions[by.role])
  return rolePermissions[role].find((permission) => !held.has(permission))
}

const isActiveOwner = (member: Standing) => member?.role === 'owner' && member.status === 'active'
