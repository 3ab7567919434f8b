import type { StartedSession } from '#access/sessions/start-session.ts'
import { gatehouse } from '#audit/event.ts'
import type { Principal } from '#http/principal.ts'
import { transact } from '#platform/transaction.ts'
import { findOrganizationName, replaceSession } from '#sign-in/browser-session.ts'
import { listMemberships } from '#sign-in/members/identity-store.ts'
import { judgeInvitation } from '#sign-in/members/judge-invitation.ts'
import { insertProviderSession } from '#sign-in/members/provider-session-store.ts'
import { sealToken } from '#sign-in/members/provider-tokens.ts'
import {
  type Described,
  type Review,
  reviewMembership,
} from '#sign-in/members/review-membership.ts'
import type { SignedInAccount } from '#sign-in/oidc/describe-account.ts'
import { SignInRefused } from '#sign-in/sign-in-refused.ts'

import type { ProviderDeps } from './provider-deps.ts'

const organizationsMax = 100

type SignIn = {
  described: Described
  account: SignedInAccount
  /** The organization that the person has chosen. */
  wanted: string | null
  /** The hash of the invitation that the person has opened: only its member is signed in. */
  invitation: string | null
  requestId: string
  /** Who has been signed in with this browser before. */
  earlier: Principal | null
}

export type Admitted =
  | { kind: 'signed_in'; organizationId: string; started: StartedSession }
  | { kind: 'several'; organizations: readonly { id: string; name: string }[] }

/**
 * Signs a described account in. All its memberships are compared with the claims, also those of other organizations than the one
 * that it enters.
 */
export async function admitAccount(signIn: SignIn, deps: ProviderDeps): Promise<Admitted> {
  const { described, wanted, invitation } = signIn
  const candidates = await findCandidates(described, deps)
  const isPossible =
    wanted === null ? candidates.length > 0 : candidates.includes(wanted) || invitation !== null
  if (!isPossible) throw new SignInRefused(described.mapped.doubt ?? 'no_entry')
  const [only, ...others] = candidates
  const isOnly = others.length === 0 && (wanted ?? only) === only
  if (only !== undefined && isOnly) return enter(only, signIn, deps)

  const open: string[] = []
  let refusal: Review['refusal'] = null
  for (const organizationId of candidates) {
    const review = await compare(organizationId, signIn, deps)
    if (review.refusal === null) open.push(organizationId)
    else refusal ??= review.refusal
  }
  const [first, ...further] = open
  if (wanted !== null) return enter(wanted, signIn, deps)
  if (first === undefined) throw new SignInRefused(refusal ?? 'no_entry')
  if (further.length === 0) return enter(first, signIn, deps)
  return { kind: 'several', organizations: await nameAll(open, deps) }
}

async function findCandidates(
  { provider: { issuer }, identity, mapped }: Described,
  { db }: ProviderDeps,
): Promise<string[]> {
  const { subject, email, isEmailVerified } = identity
  const verified = isEmailVerified ? email : null
  const known = await listMemberships(db, { issuer, subject }, verified, organizationsMax)
  const mappedTo = mapped.entries.map(({ organizationId }) => organizationId)
  return [...new Set([...known, ...mappedTo])].slice(0, organizationsMax)
}

function compare(organizationId: string, { described, requestId }: SignIn, deps: ProviderDeps) {
  const { db, announce, now } = deps
  const by = { ...gatehouse, requestId }
  return transact(db, (tx) =>
    reviewMembership(tx, { organizationId, enters: false }, described, {
      announce,
      now: now(),
      by,
    }),
  )
}

/** A refusal commits, because it may have suspended the member. */
async function enter(
  organizationId: string,
  { described, account, invitation, requestId, earlier }: SignIn,
  deps: ProviderDeps,
): Promise<Admitted> {
  const { provider, identity } = described
  const { db, announce, secretBox } = deps
  const now = deps.now()
  const by = { ...gatehouse, requestId }
  const { review, started } = await transact(db, async (tx) => {
    const wrong =
      invitation !== null &&
      (await judgeInvitation(tx, { organizationId, invitation, described, now }))
    if (wrong) throw new SignInRefused(wrong, { organizationId })
    const reviewed = await reviewMembership(tx, { organizationId, enters: true }, described, {
      announce,
      now,
      by,
    })
    const { refusal, memberId } = reviewed
    if (refusal !== null || memberId === null) return { review: reviewed, started: undefined }
    const owner = { organizationId, memberId }
    const signIn = { owner, method: provider.id, requestId, now }
    const session = await replaceSession(tx, signIn, earlier, deps)
    if (session) {
      const place = { organization_id: organizationId, session_id: session.id }
      await insertProviderSession(tx, {
        ...place,
        issuer: provider.issuer,
        subject: identity.subject,
        provider_session: account.providerSession,
        id_token: sealToken(secretBox, 'id_token', place, account.idToken),
        refresh_token: sealToken(secretBox, 'refresh_token', place, account.refreshToken),
        checked_at: now,
      })
    }
    return { review: reviewed, started: session }
  })
  if (review.isNewlyKept) deps.log.event('last_owner_kept', { organization_id: organizationId })
  if (!started) throw new SignInRefused(review.refusal ?? 'member_suspended', { organizationId })
  return { kind: 'signed_in', organizationId, started }
}

const nameAll = (ids: readonly string[], deps: ProviderDeps) =>
  Promise.all(ids.map(async (id) => ({ id, name: await findOrganizationName(id, deps) })))
