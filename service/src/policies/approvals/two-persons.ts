import { rolePermissions } from '@gatehouse/contract/role'

import type { Principal } from '#http/principal.ts'

import type { Approval } from './approval-store.ts'

/**
 * Two persons stand behind what is put in force: the one who does it, and a member who has approved this very revision. The
 * approval of a member who drafted the revision does not count, nor that of a member who is suspended or may not publish any
 * more. Keys approve nothing.
 */
export type Consent =
  | { readonly kind: 'given'; readonly by: string }
  | { readonly kind: 'outdated' }
  | { readonly kind: 'missing' }

type Wanted = {
  revision: number
  /** Who last changed the draft, if the draft is what is put in force. */
  draftedBy: string | null
  caller: Pick<Principal, 'credentialId' | 'member'>
}

export function findConsent(approvals: readonly Approval[], wanted: Wanted): Consent {
  const others = approvals.filter((approval) => isOfAnother(approval, wanted))
  const matching = others.find(({ revision }) => revision === wanted.revision)
  if (matching) return { kind: 'given', by: matching.memberId }
  return { kind: others.length > 0 ? 'outdated' : 'missing' }
}

const isOfAnother = (approval: Approval, { draftedBy, caller }: Wanted) =>
  mayConsent(approval) && approval.memberId !== caller.member?.id && approval.memberId !== draftedBy

/** Whether the member may still publish, and so may still consent. */
export const mayConsent = ({ isMemberActive, memberRole }: Approval) =>
  isMemberActive && rolePermissions[memberRole].includes('policies.publish')
