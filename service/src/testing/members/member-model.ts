import type { MemberStatus } from '@gatehouse/contract/members/member'
import type { Permission } from '@gatehouse/contract/permission'
import { type ProjectRole, type Role, rolePermissions } from '@gatehouse/contract/role'

// A model of who may do what in one organization, without a database. It says what the service answers, and what is there then.

type ModelMember = {
  role: Role
  status: MemberStatus
  hasSession: boolean
  /** Whether the person has ever signed in. */
  wasSeen: boolean
}

type ModelProjectKey = {
  project: string
  /** The address of the person whose key it is; null: the organization's. */
  owner: string | null
  permissions: ReadonlySet<Permission>
}

export type MemberModel = {
  /** By address. */
  members: Map<string, ModelMember>
  /** The permissions of administrator keys, by name. */
  keys: Map<string, ReadonlySet<Permission>>
  /** By project and address. */
  memberships: Map<string, ProjectRole>
  /** Those of projects that were not revoked, by name. */
  projectKeys: Map<string, ModelProjectKey>
}

/** Who acts: a key by its name, or a member by the address. */
export type Actor = { key: string } | { member: string }

/** The status and code of an answer. */
export type Outcome = readonly [status: number, code?: string]

export const denied: Outcome = [403, 'permission_denied']
const unknown: Outcome = [404, 'member_not_found']
export const signedOut: Outcome = [401, 'invalid_session']

export function createMemberModel(first: ReadonlySet<Permission>): MemberModel {
  return {
    members: new Map(),
    keys: new Map([['first', first]]),
    memberships: new Map(),
    projectKeys: new Map(),
  }
}

/** What an actor may do at the moment; undefined: the actor is not signed in. */
export function holdingsOf(
  { members, keys }: MemberModel,
  actor: Actor,
): ReadonlySet<Permission> | undefined {
  if ('key' in actor) return keys.get(actor.key)
  const member = members.get(actor.member)
  return member?.status === 'active' && member.hasSession
    ? new Set(rolePermissions[member.role])
    : undefined
}

const activeOwners = ({ members }: MemberModel) =>
  [...members.values()].filter(({ role, status }) => role === 'owner' && status === 'active')

/** Owners decide about owners. Where none is active, a key that can make keys does. */
function decidesAboutOwners(model: MemberModel, actor: Actor): boolean {
  if ('member' in actor) return model.members.get(actor.member)?.role === 'owner'
  const canMakeKeys = model.keys.get(actor.key)?.has('admin_api_keys.write') ?? false
  return canMakeKeys && activeOwners(model).length === 0
}

const canGive = (model: MemberModel, actor: Actor, role: Role) =>
  role === 'owner'
    ? decidesAboutOwners(model, actor)
    : isWithin(rolePermissions[role], holdingsOf(model, actor))

export const isWithin = (
  permissions: readonly Permission[],
  held: ReadonlySet<Permission> | undefined,
): boolean => permissions.every((permission) => held?.has(permission))

export function invite(
  model: MemberModel,
  actor: Actor,
  { email, role }: { email: string; role: Role },
): Outcome {
  const held = holdingsOf(model, actor)
  if (!held) return signedOut
  const mayInvite = held.has('members.write')
  const mayMakeFirst = role === 'owner' && held.has('admin_api_keys.write')
  if (!(mayInvite || mayMakeFirst) || !canGive(model, actor, role)) return denied
  if (model.members.has(email)) return [409, 'member_email_taken']
  model.members.set(email, { role, status: 'invited', hasSession: false, wasSeen: false })
  return [201]
}

type Edit = { role?: Role | undefined; status?: 'active' | 'suspended' | undefined }

export function edit(
  model: MemberModel,
  actor: Actor,
  { email, ...change }: Edit & { email: string },
): Outcome {
  const held = holdingsOf(model, actor)
  if (!held) return signedOut
  if (!held.has('members.write')) return denied
  const before = model.members.get(email)
  if (!before) return unknown
  const after = afterEdit(before, change)
  if ([before.role, after.role].includes('owner') && !decidesAboutOwners(model, actor)) {
    return denied
  }
  const isGiven = before.role !== after.role || isBack(before, after)
  if (isGiven && !canGive(model, actor, after.role)) return denied
  if (isLastOwner(model, before) && !isActiveOwner(after)) return [409, 'last_owner']
  model.members.set(email, after)
  return [200]
}

function afterEdit(before: ModelMember, { role = before.role, status }: Edit): ModelMember {
  const edited = { ...before, role }
  if (status === 'suspended') return { ...edited, status, hasSession: false }
  if (status === undefined || before.status !== 'suspended') return edited
  return { ...edited, status: before.wasSeen ? 'active' : 'invited' }
}

const isBack = (before: ModelMember, after: ModelMember) =>
  before.status === 'suspended' && after.status !== 'suspended'

const isActiveOwner = ({ role, status }: ModelMember) => role === 'owner' && status === 'active'
const isLastOwner = (model: MemberModel, member: ModelMember) =>
  isActiveOwner(member) && activeOwners(model).length === 1

export function remove(model: MemberModel, actor: Actor, email: string): Outcome {
  const held = holdingsOf(model, actor)
  if (!held) return signedOut
  if (!held.has('members.write')) return denied
  const member = model.members.get(email)
  if (!member) return unknown
  if (member.role === 'owner' && !decidesAboutOwners(model, actor)) return denied
  if (isLastOwner(model, member)) return [409, 'last_owner']
  model.members.delete(email)
  leaveAll(model, email)
  return [200]
}

/** A person who is removed leaves all projects. */
function leaveAll(model: MemberModel, email: string) {
  for (const place of model.memberships.keys()) {
    if (place.endsWith(` ${email}`)) model.memberships.delete(place)
  }
  endOwnKeys(model, email)
}

/** Of a person who leaves a project, or all of them. */
export function endOwnKeys({ projectKeys }: MemberModel, email: string, project?: string) {
  for (const [name, key] of projectKeys) {
    const isMeant = key.owner === email && (project === undefined || key.project === project)
    if (isMeant) projectKeys.delete(name)
  }
}

export const placeOf = (project: string, email: string) => `${project} ${email}`

/** A person signs in; false: there is no such member, or a suspended one. */
export function signIn({ members }: MemberModel, email: string): boolean {
  const member = members.get(email)
  if (!member || member.status === 'suspended') return false
  members.set(email, { ...member, status: 'active', hasSession: true, wasSeen: true })
  return true
}

export function makeKey(
  model: MemberModel,
  actor: Actor,
  { name, permissions }: { name: string; permissions: ReadonlySet<Permission> },
): Outcome {
  const held = holdingsOf(model, actor)
  if (!held) return signedOut
  if (!held.has('admin_api_keys.write') || !isWithin([...permissions], held)) return denied
  model.keys.set(name, permissions)
  return [201]
}
