import {
  findMemberByEmail,
  insertMember,
  type MemberRow,
  updateMemberRow,
} from '#access/members/member-store.ts'
import { presentMember } from '#access/members/present-member.ts'
import { endSessionsOf } from '#access/sessions/session-store.ts'
import { announceEnds } from '#access/sessions/start-session.ts'
import type { Actor } from '#audit/actor.ts'
import type { Announce } from '#audit/announce.ts'
import type { RevisionAction } from '#audit/event.ts'
import type { Tx } from '#platform/database.ts'
import { createId } from '#platform/id.ts'
import type { Identity } from '#sign-in/providers/read-identity.ts'

import { updateEmail } from './identity-store.ts'
import type { MemberStanding } from './judge-account.ts'

type Deps = { announce: Announce; now: Date; by: Actor }

type Created = { organizationId: string; after: MemberStanding; identity: Identity }

/** Makes the account a member. Undefined without an address, which is verified where there is one. */
export async function createMappedMember(
  tx: Tx,
  { organizationId, after: { role, source, status }, identity: { email, name } }: Created,
  { announce, now, by }: Deps,
): Promise<MemberRow | undefined> {
  if (email === null) return undefined
  const member: MemberRow = {
    organization_id: organizationId,
    id: createId('mem', now),
    email,
    name: name ?? email.slice(0, email.indexOf('@')),
    role,
    role_source: source,
    status,
    last_seen_at: null,
    managed_by: null,
    created_at: now,
  }
  await insertMember(tx, member)
  const after = presentMember(member)
  await announce(tx, { organizationId, by, action: 'created', before: null, after })
  return member
}

type Saved = {
  member: MemberRow
  after: MemberStanding | null
  identity: Identity
  isAdmitted: boolean
}

/** Saves what the claims have made of a member, with an event if that is something else. A suspension ends the sessions. */
export async function saveStanding(
  tx: Tx,
  { member, after: standing, identity, isAdmitted }: Saved,
  { announce, now, by }: Deps,
): Promise<MemberRow> {
  const email = isAdmitted ? await findNewAddress(tx, member, identity) : null
  if (!standing && email === null) return member
  const after: MemberRow = {
    ...member,
    ...(standing && {
      role: standing.role,
      role_source: standing.source,
      status: standing.status,
    }),
    email: email ?? member.email,
  }
  const { organization_id: organizationId, id: memberId } = member
  await updateMemberRow(tx, after)
  if (email !== null) {
    await updateEmail(tx, { organization_id: organizationId, member_id: memberId }, email)
  }
  await announce(tx, {
    organizationId,
    by,
    action: actionOf(member, after),
    before: presentMember(member),
    after: presentMember(after),
    notifies: 'member',
  })
  if (after.status === 'suspended') {
    const ended = await endSessionsOf(tx, { organizationId, memberId }, now)
    await announceEnds(tx, ended, { by, action: 'ended' }, announce)
  }
  return after
}

/** The claims gave another role or none, and the member is still owner because there is no other. */
export async function announceKept(tx: Tx, member: MemberRow, { announce, by }: Deps) {
  const { organization_id: organizationId } = member
  const same = presentMember(member)
  await announce(tx, { organizationId, by, action: 'kept', before: same, after: same })
}

/** Null: the account has none that is verified, or it is the member's, or another member has it. */
async function findNewAddress(
  tx: Tx,
  { organization_id, email: current }: MemberRow,
  { email, isEmailVerified }: Identity,
): Promise<string | null> {
  if (email === null || !isEmailVerified || email === current) return null
  return (await findMemberByEmail(tx, organization_id, email)) ? null : email
}

function actionOf(before: MemberRow, after: MemberRow): RevisionAction {
  if (before.status === after.status || before.status === 'invited') return 'updated'
  return after.status === 'suspended' ? 'suspended' : 'reinstated'
}
