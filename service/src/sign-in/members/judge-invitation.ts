import { findLink } from '#access/member-links/link-store.ts'
import { lockOrganization } from '#access/organizations/organization-store.ts'
import type { Tx } from '#platform/database.ts'
import type { RefusalReason } from '#sign-in/sign-in-refused.ts'

import { findIdentity } from './identity-store.ts'
import type { Described } from './review-membership.ts'

type Opened = { organizationId: string; invitation: string; described: Described; now: Date }

/**
 * Why an account may not accept the invitation that the person has opened; null if it may. An invitation is for one address, which
 * the provider must have verified: the link alone opens nothing. It is used up when its member is active, so that the commit of the
 * first sign-in ends it.
 */
export async function judgeInvitation(
  tx: Tx,
  { organizationId, invitation, described, now }: Opened,
): Promise<RefusalReason | null> {
  await lockOrganization(tx, organizationId)
  const hashes = [Buffer.from(invitation, 'base64')]
  const link = await findLink(tx, { kind: 'invitation', hashes }, now)
  if (link?.status === 'suspended') return 'member_suspended'
  if (link?.status !== 'invited') return 'invitation_unusable'
  const { identity, provider } = described
  if (identity.email !== link.email) return 'other_address'
  if (!identity.isEmailVerified) return 'address_unverified'
  const { issuer } = provider
  const bound = await findIdentity(tx, organizationId, { issuer, subject: identity.subject })
  return bound && bound.member_id !== link.member_id ? 'other_account' : null
}
