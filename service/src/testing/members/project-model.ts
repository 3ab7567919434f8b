import { defaultProjectKeyPermissions, type Permission } from '@gatehouse/contract/permission'
import { includesProjectRole, type ProjectRole } from '@gatehouse/contract/role'

import {
  type Actor,
  denied,
  endOwnKeys,
  holdingsOf,
  isWithin,
  type MemberModel,
  type Outcome,
  placeOf,
  signedOut,
} from './member-model.ts'

// The part of the model that is about projects: who belongs to one, and which keys it has.

const badOwn: Outcome = [422, 'invalid_parameter']

/** By what right an actor acts in a project: the permission, or at least this role. */
function standingOf(model: MemberModel, actor: Actor, project: string, needed: ProjectRole) {
  const held = holdingsOf(model, actor)
  if (!held) return signedOut
  if (held.has('projects.write')) return 'permission'
  const role = 'member' in actor ? model.memberships.get(placeOf(project, actor.member)) : undefined
  return role && includesProjectRole(role, needed) ? role : denied
}

const isRefusal = (standing: ReturnType<typeof standingOf>): standing is Outcome =>
  typeof standing !== 'string'

export function join(
  model: MemberModel,
  actor: Actor,
  { project, email, projectRole }: { project: string; email: string; projectRole: ProjectRole },
): Outcome {
  const standing = standingOf(model, actor, project, 'project_admin')
  if (isRefusal(standing)) return standing
  if (!model.members.has(email)) return [404, 'member_not_found']
  model.memberships.set(placeOf(project, email), projectRole)
  return [200]
}

export function leave(
  model: MemberModel,
  actor: Actor,
  { project, email }: { project: string; email: string },
): Outcome {
  const standing = standingOf(model, actor, project, 'project_admin')
  if (isRefusal(standing)) return standing
  if (!model.memberships.delete(placeOf(project, email))) return [404, 'member_not_found']
  endOwnKeys(model, email, project)
  return [200]
}

type NewKey = {
  project: string
  name: string
  own?: boolean | undefined
  permissions: readonly Permission[]
}

export function makeProjectKey(model: MemberModel, actor: Actor, wanted: NewKey): Outcome {
  const { project, name, permissions } = wanted
  const standing = standingOf(model, actor, project, 'project_member')
  if (isRefusal(standing)) return standing
  const own = wanted.own ?? standing !== 'permission'
  if (!own && standing === 'project_member') return denied
  const owner = 'member' in actor ? actor.member : undefined
  if (own && owner === undefined) return badOwn
  const grantable = own ? new Set<Permission>() : (holdingsOf(model, actor) ?? new Set())
  const grants = new Set<Permission>([...grantable, ...defaultProjectKeyPermissions])
  if (!isWithin(permissions, grants)) return denied
  if (own && !model.memberships.has(placeOf(project, owner ?? ''))) return badOwn
  model.projectKeys.set(name, {
    project,
    owner: own ? (owner ?? null) : null,
    permissions: new Set(permissions),
  })
  return [201]
}

export function revokeProjectKey(
  model: MemberModel,
  actor: Actor,
  { project, name }: { project: string; name: string },
): Outcome {
  const standing = standingOf(model, actor, project, 'project_member')
  if (isRefusal(standing)) return standing
  const key = model.projectKeys.get(name)
  const isOthers = standing === 'project_member' && 'member' in actor && key?.owner !== actor.member
  if (key?.project !== project || isOthers) return [404, 'api_key_not_found']
  model.projectKeys.delete(name)
  return [200]
}

/** Whether calls with the key are let in. */
export function works({ members, memberships, projectKeys }: MemberModel, name: string): boolean {
  const key = projectKeys.get(name)
  if (!key || key.owner === null) return key !== undefined
  const isActive = members.get(key.owner)?.status === 'active'
  return isActive && memberships.has(placeOf(key.project, key.owner))
}
