import { membersMax } from '#access/members/change-member.ts'
import {
  countMembers,
  findMember,
  findMemberByEmail,
  type MemberRow,
} from '#access/members/member-store.ts'
import { lockOrganization } from '#access/organizations/organization-store.ts'
import type { Actor } from '#audit/actor.ts'
import type { Announce } from '#audit/announce.ts'
import type { Tx } from '#platform/database.ts'
import { type Mapped, mapIdentity, vouchesFor } from '#sign-in/providers/map-identity.ts'
import type { Identity } from '#sign-in/providers/read-identity.ts'
import type { SignInProvider, SignInSettings } from '#sign-in/providers/read-sign-in.ts'
import type { RefusalReason } from '#sign-in/sign-in-refused.ts'

import { announceKept, createMappedMember, saveStanding } from './change-standing.ts'
import { findIdentity, type IdentityRow, listIdentitiesOf, saveIdentity } from './identity-store.ts'
import { assigned, judgeAccount, type Judgement } from './judge-account.ts'

/** An account that has just been described by its provider, and what the file says about it. */
export type Described = {
  readonly settings: SignInSettings
  readonly provider: SignInProvider
  readonly identity: Identity
  readonly mapped: Mapped
}

export const describeMapped = (
  settings: SignInSettings,
  provider: SignInProvider,
  identity: Identity,
): Described => {
  const mapped = mapIdentity(identity, provider.mappings)
  return { settings, provider, identity, mapped }
}

export type ReviewDeps = {
  announce: Announce
  now: Date
  /** `gatehouse`, with the request of the sign-in if there is one. */
  by: Actor
}

export type Review = {
  refusal: RefusalReason | null
  /** Null: there is none, or not yet. */
  memberId: string | null
  /** Since now, only being the last owner keeps the member's role. */
  isNewlyKept: boolean
}

const refuse = (refusal: RefusalReason): Review => ({ refusal, memberId: null, isNewlyKept: false })

/**
 * Compares a described account with its member in one organization, and makes the member what the claims say. Only where the
 * person `enters`, a member is created, or one who has never used this account is bound to it.
 */
export async function reviewMembership(
  tx: Tx,
  { organizationId, enters }: { organizationId: string; enters: boolean },
  described: Described,
  deps: ReviewDeps,
): Promise<Review> {
  const organization = await lockOrganization(tx, organizationId)
  if (!organization) return refuse('no_entry')
  if (organization.status === 'suspended') return refuse('organization_suspended')
  const { provider, identity } = described
  const { issuer } = provider
  const bound = await findIdentity(tx, organizationId, { issuer, subject: identity.subject })
  const member = await findKnown(tx, organizationId, bound, described)
  if (member && !bound && (await usesAnotherAccount(tx, member, described))) {
    return refuse('other_account')
  }
  const { members, activeOwners } = await countMembers(tx, organizationId)
  const judgement = judge(described, organizationId, { member, bound, activeOwners })
  if (!bound && !enters) {
    return { refusal: judgement.refusal, memberId: member?.id ?? null, isNewlyKept: false }
  }
  if (!member && judgement.after && members >= membersMax) return refuse('members_full')
  return apply(tx, { organizationId, member, bound, judgement }, described, deps)
}

type Found = { member: MemberRow | undefined; bound: IdentityRow | undefined }

/** The member whom this account is bound to, or else the one with its verified address, if its provider vouches for it here. */
async function findKnown(
  tx: Tx,
  organizationId: string,
  bound: IdentityRow | undefined,
  { settings, provider, identity: { email, isEmailVerified } }: Described,
): Promise<MemberRow | undefined> {
  if (bound) return findMember(tx, organizationId, bound.member_id)
  if (email === null || !isEmailVerified) return undefined
  if (!vouchesFor(settings, provider, organizationId)) return undefined
  return findMemberByEmail(tx, organizationId, email)
}

/**
 * An address may have become another person's, and another provider may give it to whom it likes. Accounts of providers that
 * the file no longer names do not count, so that an organization can change its provider.
 */
async function usesAnotherAccount(
  tx: Tx,
  { organization_id, id }: MemberRow,
  { settings }: Described,
): Promise<boolean> {
  const identities = await listIdentitiesOf(tx, organization_id, id)
  return identities.some(({ issuer, client_id }) =>
    settings.providers.some((each) => each.issuer === issuer && each.clientId === client_id),
  )
}

function judge(
  { settings, identity, mapped }: Described,
  organizationId: string,
  { member, bound, activeOwners }: Found & { activeOwners: number },
): Judgement {
  const entry = mapped.entries.find((each) => each.organizationId === organizationId) ?? null
  const { isEmailVerified } = identity
  const known = member && {
    standing: { role: member.role, source: member.role_source, status: member.status },
    hasLostRole: bound?.lost_at != null && member.role_source !== assigned,
    isLastOwner: member.role === 'owner' && member.status === 'active' && activeOwners <= 1,
  }
  const account = { entry, doubt: mapped.doubt, isEmailVerified }
  return judgeAccount(account, known ?? null, settings.createsMembers)
}

type Applied = Found & { organizationId: string; judgement: Judgement }

async function apply(
  tx: Tx,
  { organizationId, member, bound, judgement }: Applied,
  { provider, identity }: Described,
  deps: ReviewDeps,
): Promise<Review> {
  const { refusal, after, isKept } = judgement
  const saved = member
    ? await saveStanding(tx, { member, after, identity, isAdmitted: refusal === null }, deps)
    : after && (await createMappedMember(tx, { organizationId, after, identity }, deps))
  if (!saved) return refuse(refusal ?? 'no_entry')
  const isNewlyKept = isKept && bound?.kept_at == null
  if (isNewlyKept) await announceKept(tx, saved, deps)
  // A doubt says nothing about the account; what was known of it stays.
  if (refusal === null || refusal === 'role_removed') {
    await saveIdentity(tx, {
      organization_id: organizationId,
      issuer: provider.issuer,
      subject: identity.subject,
      client_id: provider.clientId,
      member_id: saved.id,
      lost_at: refusal === null ? null : (bound?.lost_at ?? deps.now),
      kept_at: isKept ? (bound?.kept_at ?? deps.now) : null,
      created_at: bound?.created_at ?? deps.now,
    })
  }
  return { refusal, memberId: saved.id, isNewlyKept }
}
