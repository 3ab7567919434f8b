import { isDeepStrictEqual } from 'node:util'

import type { MemberEdit } from '@gatehouse/contract/members/member'
import { rolePermissions } from '@gatehouse/contract/role'

import { endOwnKeys } from '#access/keys/end-own-keys.ts'
import { lockOrganization } from '#access/organizations/organization-store.ts'
import { endSessionsOf } from '#access/sessions/session-store.ts'
import { announceEnds } from '#access/sessions/start-session.ts'
import { permissionDenied, roleRequired } from '#access/unauthorized.ts'
import type { Actor } from '#audit/actor.ts'
import type { Announce } from '#audit/announce.ts'
import { callerOf } from '#audit/event.ts'
import type { Principal } from '#http/principal.ts'
import { ApiError, limitReached, notFound } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Tx } from '#platform/database.ts'
import { createId } from '#platform/id.ts'

import { type MemberChanger, judgeMemberChange } from './member-rules.ts'
import {
  countMembers,
  deleteMemberRow,
  findMember,
  findMemberByEmail,
  forgetLostRoles,
  insertMember,
  type MemberRow,
  updateMemberRow,
} from './member-store.ts'
import { presentMember } from './present-member.ts'

export const membersMax = 10_000 // per organization

/** Who changes members of an organization: for the rules, and for the audit event. */
export type MemberManager = { organizationId: string; acting: MemberChanger; by: Actor }

type Deps = { announce: Announce; now: Clock }

/**
 * The caller of an endpoint. The organization has to be locked: a member's own role is read here, because for some seconds after
 * a change the session still has the old one.
 */
export async function readManager(
  tx: Tx,
  call: { principal: Principal; requestId: string },
): Promise<MemberManager> {
  const { organizationId, member, permissions } = call.principal
  const by = callerOf(call)
  if (!member) return { organizationId, by, acting: { kind: 'key', permissions } }
  const row = await findMember(tx, organizationId, member.id)
  if (row?.status !== 'active') throw roleRequired('You are no longer an active member.')
  const isManager = rolePermissions[row.role].includes('members.write')
  if (!isManager) throw permissionDenied('members.write')
  return { organizationId, by, acting: { kind: 'member', role: row.role } }
}

/** Locks the organization, so that what is counted of its members stays true. False: there is no such organization. */
export const lockMembers = async (tx: Tx, organizationId: string): Promise<boolean> =>
  (await lockOrganization(tx, organizationId)) !== undefined

type Invitation = {
  email: string
  name?: string | undefined
  role: MemberRow['role']
  /** The set that manages the member; none if absent. */
  managedBy?: string | null
}

/** The caller has locked the members. */
export async function inviteMember(
  tx: Tx,
  { email, name = email.split('@')[0] ?? email, role, managedBy = null }: Invitation,
  { organizationId, acting, by }: MemberManager,
  { announce, now }: Deps,
): Promise<MemberRow> {
  const createdAt = now()
  const { members, activeOwners } = await countMembers(tx, organizationId)
  const status = 'invited' as const
  requireAllowed({ before: null, after: { role, status } }, acting, activeOwners)
  if (await findMemberByEmail(tx, organizationId, email)) throw emailTaken(email)
  if (members >= membersMax) throw limitReached('members', membersMax)
  const member: MemberRow = {
    organization_id: organizationId,
    id: createId('mem', createdAt),
    email,
    name,
    role,
    role_source: 'assigned',
    status,
    last_seen_at: null,
    managed_by: managedBy,
    created_at: createdAt,
  }
  await insertMember(tx, member)
  const after = presentMember(member)
  await announce(tx, { organizationId, by, action: 'created', before: null, after })
  return member
}

/** A member who may get a new link, by the same rules as at the invitation. The caller has locked the members, and makes the link. */
export async function inviteAgain(
  tx: Tx,
  { id }: { id: string },
  { organizationId, acting, by }: MemberManager,
  { announce }: Pick<Deps, 'announce'>,
): Promise<MemberRow> {
  const member = await requireMember(tx, organizationId, id)
  const { role, status, email } = member
  const { activeOwners } = await countMembers(tx, organizationId)
  requireAllowed({ before: null, after: { role, status } }, acting, activeOwners)
  if (status !== 'invited') throw notInvited()
  const after = { id, object: 'organization.member.invitation', email }
  await announce(tx, { organizationId, by, action: 'created', before: null, after })
  return member
}

/** The caller has locked the members. Changes nothing, and announces nothing, if all is so already. */
export async function editMember(
  tx: Tx,
  { id, edit }: { id: string; edit: MemberEdit },
  { organizationId, acting, by }: MemberManager,
  { announce, now }: Deps,
): Promise<MemberRow> {
  const before = await requireMember(tx, organizationId, id)
  const after = applyEdit(before, edit)
  const { activeOwners } = await countMembers(tx, organizationId)
  requireAllowed({ before, after }, acting, activeOwners)
  if (edit.status !== undefined) await forgetLostRoles(tx, before)
  if (isDeepStrictEqual(after, { ...before })) return before
  await updateMemberRow(tx, after)
  await announce(tx, {
    organizationId,
    by,
    action: actionOf(before, after),
    before: presentMember(before),
    after: presentMember(after),
    notifies: 'member',
  })
  if (after.status === 'suspended' && before.status !== 'suspended') {
    // They would be valid again when the suspension ends, also those that someone else has stolen.
    const ended = await endSessionsOf(tx, { organizationId, memberId: id }, now())
    await announceEnds(tx, ended, { by, action: 'ended' }, announce)
  }
  return after
}

/** The caller has locked the members. */
export async function removeMember(
  tx: Tx,
  id: string,
  { organizationId, acting, by }: MemberManager,
  deps: Deps,
): Promise<MemberRow> {
  const member = await requireMember(tx, organizationId, id)
  const { activeOwners } = await countMembers(tx, organizationId)
  requireAllowed({ before: member, after: null }, acting, activeOwners)
  await deleteMemberRow(tx, member)
  // After the memberships, whose removal has waited for a request that was making a key at the same time.
  await endOwnKeys(tx, { organizationId, memberId: id }, by, deps)
  await deps.announce(tx, {
    organizationId,
    by,
    action: 'deleted',
    before: presentMember(member),
    after: null,
    notifies: 'member',
  })
  return member
}

/** Throws a 403 if the member is an owner and the caller may not change owners. The caller has locked the members. */
export async function requireMayTouch(
  tx: Tx,
  member: MemberRow,
  { organizationId, acting }: MemberManager,
) {
  const { activeOwners } = await countMembers(tx, organizationId)
  requireAllowed({ before: member, after: member }, acting, activeOwners)
}

export async function requireMember(
  tx: Tx,
  organizationId: string,
  id: string,
): Promise<MemberRow> {
  const member = await findMember(tx, organizationId, id)
  if (!member) throw notFound('member')
  return member
}

/** A role that is given here is no longer that of a group. */
function applyEdit(before: MemberRow, { name, role, status }: MemberEdit): MemberRow {
  return {
    ...before,
    name: name ?? before.name,
    role: role ?? before.role,
    role_source: role === undefined ? before.role_source : 'assigned',
    status: status === undefined ? before.status : toStatus(before, status),
  }
}

/** Only a sign-in makes a member active for the first time: an owner who never came would count as one who is there. */
function toStatus(before: MemberRow, wanted: NonNullable<MemberEdit['status']>) {
  if (wanted === 'suspended') return wanted
  if (before.status !== 'suspended') return before.status
  return before.last_seen_at ? 'active' : 'invited'
}

function actionOf(before: MemberRow, after: MemberRow) {
  if (before.status === after.status) return 'updated'
  return after.status === 'suspended' ? 'suspended' : 'reinstated'
}

function requireAllowed(...[change, acting, activeOwners]: Parameters<typeof judgeMemberChange>) {
  const refusal = judgeMemberChange(change, acting, activeOwners)
  if (!refusal) return
  if (refusal.reason === 'last_owner') throw lastOwner()
  if (refusal.reason === 'owners_only') throw roleRequired(ownersOnly)
  const { permission } = refusal
  const message = `You cannot give this role, because you lack the permission ${permission}.`
  throw permissionDenied(permission, message)
}

const ownersOnly =
  'Only an owner can make, change or remove owners; while none is active, a key with admin_api_keys.write can.'

const lastOwner = () =>
  new ApiError(
    'last_owner',
    'This is the last active owner; make another active member an owner first.',
  )

const notInvited = () =>
  new ApiError(
    'member_not_invited',
    'Only a member whose status is invited has an invitation; this one has signed in already, or is suspended.',
  )

const emailTaken = (email: string) =>
  new ApiError('member_email_taken', `Another member has the address ${email}.`, {
    param: 'body.email',
  })
