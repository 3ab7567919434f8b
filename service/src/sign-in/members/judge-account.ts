import type { MemberStatus } from '@gatehouse/contract/members/member'
import type { Role } from '@gatehouse/contract/role'

import type { Mapped, MappedRole } from '#sign-in/providers/map-identity.ts'

/** Of a role that an administrator has given, rather than a mapping. */
export const assigned = 'assigned'

/** What a member is; only what a sign-in can change. */
export type MemberStanding = {
  readonly role: Role
  readonly source: string
  readonly status: MemberStatus
}

/** An account as its provider has described it, in one organization. */
export type JudgedAccount = {
  readonly entry: MappedRole | null
  readonly doubt: Mapped['doubt']
  readonly isEmailVerified: boolean
}

export type KnownMember = {
  readonly standing: MemberStanding
  /** The claims have given no role since an earlier comparison, and that alone has suspended the member. */
  readonly hasLostRole: boolean
  readonly isLastOwner: boolean
}

export type Judgement = {
  /** Null: the person may sign in. */
  readonly refusal:
    | NonNullable<Mapped['doubt']>
    | 'no_entry'
    | 'not_invited'
    | 'member_suspended'
    | 'role_removed'
    | null
  /** What the member becomes; null: nothing changes. */
  readonly after: MemberStanding | null
  /** Only because the member is the last owner. */
  readonly isKept: boolean
}

const refuse = (refusal: Judgement['refusal']): Judgement => ({
  refusal,
  after: null,
  isKept: false,
})
const admit = (after: MemberStanding | null = null): Judgement => ({
  refusal: null,
  after,
  isKept: false,
})

/**
 * What a description of an account means for its member. A role that an administrator has assigned is not changed by mappings; a
 * role that came from a mapping follows the claims: another one changes it, none suspends the member until there is one again.
 * Claims that are in doubt refuse the sign-in and change nothing. Nothing is given to a member whom an administrator has
 * suspended, and the last owner stays.
 */
export function judgeAccount(
  account: JudgedAccount,
  known: KnownMember | null,
  createsMembers: boolean,
): Judgement {
  if (!known) return judgeNewcomer(account, createsMembers)
  const { standing, hasLostRole } = known
  if (standing.status === 'suspended') return judgeSuspended(account, hasLostRole)
  if (standing.source === assigned) {
    return admit(standing.status === 'active' ? null : { ...standing, status: 'active' })
  }
  return followClaims(account, known)
}

function judgeNewcomer({ entry, doubt, isEmailVerified }: JudgedAccount, createsMembers: boolean) {
  if (!entry) return refuse(doubt ?? 'no_entry')
  if (!createsMembers) return refuse('not_invited')
  // Members are known by their addresses to each other.
  if (!isEmailVerified) return refuse('address_unverified')
  return admit(toStanding(entry))
}

function judgeSuspended({ entry }: JudgedAccount, hasLostRole: boolean) {
  if (!hasLostRole) return refuse('member_suspended')
  return entry ? admit(toStanding(entry)) : refuse('role_removed')
}

function followClaims(
  { entry, doubt }: JudgedAccount,
  { standing, isLastOwner }: KnownMember,
): Judgement {
  if (!entry && doubt) return refuse(doubt)
  if (isLastOwner && entry?.role !== 'owner') return { refusal: null, after: null, isKept: true }
  if (!entry) {
    return { refusal: 'role_removed', after: { ...standing, status: 'suspended' }, isKept: false }
  }
  const after = toStanding(entry)
  const isSame = after.role === standing.role && after.source === standing.source
  return admit(isSame && standing.status === 'active' ? null : after)
}

const toStanding = ({ role, source }: MappedRole): MemberStanding => ({
  role,
  source,
  status: 'active',
})
