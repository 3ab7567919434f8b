/**
 * Why a person is not signed in: the status of the answer, and what the page says. Each message says what to do, and none
 * tells an outsider anything about an organization.
 */
const refusals = {
  unknown_provider: [
    404,
    'This gateway has no sign-in with this name. Use a link of its sign-in page.',
  ],
  bad_return_path: [
    400,
    'The link leads to no page of this gateway. Open the sign-in page itself.',
  ],
  flow_missing: [
    400,
    'This sign-in was not started in this browser, or more than 10 minutes ago. Allow cookies for this gateway, and start again.',
  ],
  wrong_state: [
    400,
    'This answer does not belong to the sign-in that this browser has started last. Close other sign-in tabs, and start again.',
  ],
  flow_used: [
    409,
    'This sign-in has been completed already. If you are not signed in, start again.',
  ],
  wrong_provider: [
    400,
    'The answer did not come from the provider that was asked. Start again; if it comes again, tell the operator of this gateway.',
  ],
  provider_refused: [
    403,
    'The provider did not let you sign in. Start again, or ask its administrator for access.',
  ],
  code_refused: [
    400,
    'The provider did not accept its own answer, because it was used before or is too old. Start again.',
  ],
  wrong_nonce: [400, 'The provider has answered another sign-in than this one. Start again.'],
  bad_token: [
    502,
    'The provider sent a token that cannot be trusted. Ask the operator to compare issuer and client_id with those of the provider.',
  ],
  clocks_apart: [
    502,
    'The clocks of the provider and of this gateway are more than 60 seconds apart. Ask the operator to set them by a time server.',
  ],
  client_refused: [
    502,
    'The provider does not accept this gateway. Ask the operator to check client_id, client_secret and the redirect URI.',
  ],
  provider_unavailable: [
    503,
    'The provider does not answer at the moment. Try again in a minute, or use another way to sign in.',
  ],
  wrong_issuer: [
    502,
    'The provider calls itself by another name than SIGN_IN_FILE. Ask the operator to set issuer exactly as the provider has it.',
  ],
  groups_missing: [
    403,
    'Your account is in more groups than the provider sends. Ask the operator to map app roles of the provider instead of groups.',
  ],
  address_unverified: [
    403,
    'The provider has not verified your email address. Verify it there, or ask the operator which claim says that it is verified.',
  ],
  no_entry: [
    403,
    'Your account has no role here. Ask an administrator for an invitation, or to be added to a group that has a role.',
  ],
  not_invited: [
    403,
    'Your account may have a role here, but only invited persons become members. Ask an administrator for an invitation.',
  ],
  member_suspended: [
    403,
    'Your membership is suspended. Ask an administrator of your organization to reinstate it.',
  ],
  role_removed: [
    403,
    'Your account has lost the group or role that let you in. Ask an administrator to give it back.',
  ],
  organization_suspended: [
    403,
    'The organization is suspended. The operator of this gateway can reinstate it.',
  ],
  other_account: [
    403,
    'Your address belongs to a member who signs in with another account. Ask an administrator to remove that member first.',
  ],
  link_unusable: [
    403,
    'This link was used already, is older than 10 minutes, was replaced by another one, or is incomplete. Ask the operator for a new one.',
  ],
  invitation_unusable: [
    403,
    'This invitation was accepted already, has expired, was replaced by another one, or is incomplete. Ask an administrator of your organization for a new one.',
  ],
  other_address: [
    403,
    'This invitation is for another address than the one of your account. Sign in with the account that has it, or ask an administrator to invite your address.',
  ],
  members_full: [
    403,
    'The organization has as many members as it may have. Ask an administrator to remove some.',
  ],
} as const satisfies Record<string, readonly [number, string]>

export type RefusalReason = keyof typeof refusals
export const refusalReasons = Object.keys(refusals) as RefusalReason[]

type Details = {
  cause?: unknown
  /** Where it was refused, if that is known. */
  organizationId?: string
}

/** A sign-in that was refused. The message is for the person, the cause for the log. */
export class SignInRefused extends Error {
  readonly reason: RefusalReason
  readonly status: number
  readonly organizationId: string | undefined

  constructor(reason: RefusalReason, { cause, organizationId }: Details = {}) {
    super(refusals[reason][1], { cause })
    this.reason = reason
    this.status = refusals[reason][0]
    this.organizationId = organizationId
  }
}
