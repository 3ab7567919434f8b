import {
  AdminKeyPermission,
  defaultProjectKeyPermissions,
  type Permission,
  ProjectKeyPermission,
} from '@gatehouse/contract/permission'
import { ProjectRole, type Role, rolePermissions } from '@gatehouse/contract/role'

import type { Db } from '#platform/database.ts'

import { type MemberModel, placeOf } from './member-model.ts'

// What an organization's people and keys may do, as the database has it.

export type MemberState = {
  members: Record<string, { role: string; status: string }>
  keys: Record<string, readonly string[]>
  /** The role, by project and address. */
  memberships: Record<string, string>
  projectKeys: Record<string, { project: string; owner: string | null; permissions: string[] }>
}

export async function readMembers(db: Db, organizationId: string): Promise<MemberState> {
  const members = await db
    .selectFrom('member')
    .select(['id', 'email', 'role', 'status'])
    .where('organization_id', '=', organizationId)
    .execute()
  const keys = await db
    .selectFrom('api_key')
    .select(['name', 'permissions', 'project_id', 'member_id'])
    .where('organization_id', '=', organizationId)
    .where('revoked_at', 'is', null)
    .execute()
  const memberships = await db
    .selectFrom('project_member')
    .select(['project_id', 'member_id', 'role'])
    .where('organization_id', '=', organizationId)
    .execute()
  const emails = new Map(members.map(({ id, email }) => [id, email]))
  const emailOf = (id: string) => emails.get(id) ?? 'a member who is gone'
  return {
    members: Object.fromEntries(
      members.map(({ email, role, status }) => [email, { role, status }]),
    ),
    keys: Object.fromEntries(
      keys
        .filter(({ project_id }) => project_id === null)
        .map(({ name, permissions }) => [name, permissions.toSorted()]),
    ),
    memberships: Object.fromEntries(
      memberships.map((each) => [placeOf(each.project_id, emailOf(each.member_id)), each.role]),
    ),
    projectKeys: Object.fromEntries(
      keys.flatMap(({ name, permissions, project_id: project, member_id }) => {
        const owner = member_id && emailOf(member_id)
        return project ? [[name, { project, owner, permissions: permissions.toSorted() }]] : []
      }),
    ),
  }
}

/** The same of a model; its first key has another name in the database. */
export const stateOf = ({ members, keys, memberships, projectKeys }: MemberModel): MemberState => ({
  members: Object.fromEntries(
    [...members].map(([email, { role, status }]) => [email, { role, status }]),
  ),
  keys: Object.fromEntries(
    [...keys].map(([name, permissions]) => [
      name === 'first' ? firstKeyName : name,
      [...permissions].toSorted(),
    ]),
  ),
  memberships: Object.fromEntries(memberships),
  projectKeys: Object.fromEntries(
    [...projectKeys].map(([name, { permissions, ...key }]) => [
      name,
      { ...key, permissions: [...permissions].toSorted() },
    ]),
  ),
})

export const firstKeyName = 'First administrator key'

/**
 * `owners` stands for deciding about owners, which no permission allows. What can be done in one project only begins with the
 * id of the project.
 */
type Holding = Permission | 'owners' | `${string} ${ProjectRole | Permission}`

export type Holdings = ReadonlyMap<string, ReadonlySet<Holding>>

/** What each person and key holds; a person who is invited holds what the sign-in will give. */
export function holdingsIn(state: MemberState, projects: readonly string[]): Holdings {
  const { members, keys, memberships, projectKeys } = state
  const ofMembers = Object.entries(members).map(([email, { role, status }]) => {
    const held = status === 'suspended' ? [] : rolePermissions[role as Role]
    const isOwner = role === 'owner' && status !== 'suspended'
    // A suspension takes no membership away: its end gives back what others have given.
    const inProjects = projects.flatMap((project) =>
      holdingsByRole(project, memberships[placeOf(project, email)]),
    )
    const all = [...heldEverywhere(held, projects), ...inProjects]
    return [email, new Set<Holding>(isOwner ? [...all, 'owners'] : all)] as const
  })
  const ofKeys = Object.entries(keys).map(([name, held]) => {
    return [name, new Set(heldEverywhere(held as Permission[], projects))] as const
  })
  const ofProjectKeys = Object.entries(projectKeys).map(([name, { project, permissions }]) => {
    const held = permissions.map((each) => `${project} ${each as Permission}` as const)
    return [name, new Set<Holding>(held)] as const
  })
  return new Map<string, ReadonlySet<Holding>>([...ofMembers, ...ofKeys, ...ofProjectKeys])
}

/** What permissions allow in the organization, and so in each of its projects. */
const heldEverywhere = (held: readonly Permission[], projects: readonly string[]): Holding[] => [
  ...held,
  ...projects.flatMap((project) => [
    ...held
      .filter((each) => ProjectKeyPermission.safeParse(each).success)
      .map((each) => `${project} ${each}` as const),
    ...(held.includes('projects.write') ? holdingsByRole(project, 'project_admin') : []),
  ]),
]

/** A role in a project allows to make keys with the default permissions. */
function holdingsByRole(project: string, role: string | undefined): Holding[] {
  if (role === undefined) return []
  const roles = role === 'project_admin' ? ProjectRole.options : (['project_member'] as const)
  return [...roles, ...defaultProjectKeyPermissions].map((each) => `${project} ${each}` as const)
}

/** What anyone has gained from one state to the next. */
export const gainedIn = (before: Holdings, after: Holdings): readonly Holding[] =>
  [...after].flatMap(([name, held]) => [...held].filter((each) => !before.get(name)?.has(each)))

export const countActiveOwners = ({ members }: MemberState) =>
  Object.values(members).filter(({ role, status }) => role === 'owner' && status === 'active')
    .length

export const everythingIn = (projects: readonly string[]): ReadonlySet<Holding> =>
  new Set([...heldEverywhere(AdminKeyPermission.options, projects), 'owners'])
