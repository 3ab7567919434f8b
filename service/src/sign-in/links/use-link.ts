import { type FoundLink, type LinkName, takeLink } from '#access/member-links/link-store.ts'
import { findMember, type MemberRow, updateMemberRow } from '#access/members/member-store.ts'
import { presentMember } from '#access/members/present-member.ts'
import { lockOrganization } from '#access/organizations/organization-store.ts'
import type { StartedSession } from '#access/sessions/start-session.ts'
import { gatehouse } from '#audit/event.ts'
import type { Principal } from '#http/principal.ts'
import type { Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'
import { replaceSession } from '#sign-in/browser-session.ts'
import type { SignInDeps } from '#sign-in/deps.ts'
import { unusableLink } from '#sign-in/find-member-link.ts'
import { SignInRefused } from '#sign-in/sign-in-refused.ts'

type SignIn = {
  name: LinkName
  link: FoundLink
  requestId: string
  /** Who has been signed in with this browser before. */
  earlier: Principal | null
}

/**
 * Signs the member of a link in. The link is gone with the commit that starts the session, so that one link gives one session,
 * also if it is used twice at the same time or this process dies. A refusal rolls back, and the link stays.
 */
export function useLink(
  { name, link, requestId, earlier }: SignIn,
  deps: SignInDeps,
): Promise<StartedSession> {
  const { organization_id: organizationId, member_id: memberId } = link
  const now = deps.now()
  return transact(deps.db, async (tx) => {
    // First, as in every change of a member, so that no two transactions wait for each other.
    const organization = await lockOrganization(tx, organizationId)
    if (organization?.status === 'suspended') {
      throw new SignInRefused('organization_suspended', { organizationId })
    }
    if (!(await takeLink(tx, name, now))) throw unusableLink('sign_in')
    const member = await findMember(tx, organizationId, memberId)
    if (member?.status === 'invited') await activate(tx, member, requestId, deps)
    const signIn = { owner: { organizationId, memberId }, method: 'link', requestId, now }
    const started = await replaceSession(tx, signIn, earlier, deps)
    if (!started) throw new SignInRefused('member_suspended', { organizationId })
    return started
  })
}

/** The operator, who has made the link, vouches for the address. */
async function activate(
  tx: Tx,
  member: MemberRow,
  requestId: string,
  { announce }: Pick<SignInDeps, 'announce'>,
) {
  const active: MemberRow = { ...member, status: 'active' }
  await updateMemberRow(tx, active)
  await announce(tx, {
    organizationId: member.organization_id,
    by: { ...gatehouse, requestId },
    action: 'updated',
    before: presentMember(member),
    after: presentMember(active),
    notifies: 'member',
  })
}
