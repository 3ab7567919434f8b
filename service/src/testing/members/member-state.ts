import { AdminKeyPermission, type Permission } from '@gatehouse/contract/permission'
import { type Role, rolePermissions } from '@gatehouse/contract/role'

import type { Db } from '#platform/database.ts'

import type { MemberModel } from './member-model.ts'

// What an organization's people and keys may do, as the database has it.

export type MemberState = {
  members: Record<string, { role: string; status: string }>
  keys: Record<string, readonly string[]>
}

export async function readMembers(db: Db, organizationId: string): Promise<MemberState> {
  const members = await db
    .selectFrom('member')
    .select(['email', 'role', 'status'])
    .where('organization_id', '=', organizationId)
    .execute()
  const keys = await db
    .selectFrom('api_key')
    .select(['name', 'permissions'])
    .where('organization_id', '=', organizationId)
    .where('revoked_at', 'is', null)
    .execute()
  return {
    members: Object.fromEntries(
      members.map(({ email, role, status }) => [email, { role, status }]),
    ),
    keys: Object.fromEntries(keys.map(({ name, permissions }) => [name, permissions.toSorted()])),
  }
}

/** The same of a model; its first key has another name in the database. */
export const stateOf = ({ members, keys }: MemberModel): MemberState => ({
  members: Object.fromEntries(
    [...members].map(([email, { role, status }]) => [email, { role, status }]),
  ),
  keys: Object.fromEntries(
    [...keys].map(([name, permissions]) => [
      name === 'first' ? firstKeyName : name,
      [...permissions].toSorted(),
    ]),
  ),
})

export const firstKeyName = 'First administrator key'

/** `owners` stands for deciding about owners, which no permission allows. */
type Holding = Permission | 'owners'

export type Holdings = ReadonlyMap<string, ReadonlySet<Holding>>

/** What each person and key holds; a person who is invited holds what the sign-in will give. */
export function holdingsIn({ members, keys }: MemberState): Holdings {
  const ofMembers = Object.entries(members).map(([email, { role, status }]) => {
    const held = status === 'suspended' ? [] : rolePermissions[role as Role]
    const isOwner = role === 'owner' && status !== 'suspended'
    return [email, new Set<Holding>(isOwner ? [...held, 'owners'] : held)] as const
  })
  const ofKeys = Object.entries(keys).map(
    ([name, held]) => [name, new Set<Holding>(held as Permission[])] as const,
  )
  return new Map([...ofMembers, ...ofKeys])
}

/** What anyone has gained from one state to the next. */
export const gainedIn = (before: Holdings, after: Holdings): readonly Holding[] =>
  [...after].flatMap(([name, held]) => [...held].filter((each) => !before.get(name)?.has(each)))

export const countActiveOwners = ({ members }: MemberState) =>
  Object.values(members).filter(({ role, status }) => role === 'owner' && status === 'active')
    .length

export const everything: ReadonlySet<Holding> = new Set([...AdminKeyPermission.options, 'owners'])
