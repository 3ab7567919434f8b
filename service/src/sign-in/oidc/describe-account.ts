import {
  type Configuration,
  fetchUserInfo,
  type IDToken,
  type TokenEndpointResponse,
} from 'openid-client'

import {
  type Claims,
  type Identity,
  readIdentity,
  readJoinedIdentity,
} from '#sign-in/providers/read-identity.ts'
import type { SignInProvider } from '#sign-in/providers/read-sign-in.ts'
import { SignInRefused } from '#sign-in/sign-in-refused.ts'

import { explainProtocolError } from './explain-protocol-error.ts'

/** An account as its provider has just described it, and what the provider can be asked with later. */
export type SignedInAccount = {
  readonly identity: Identity
  /** The provider's own session, which it may end; null if it has not named it. */
  readonly providerSession: string | null
  readonly idToken: string | null
  readonly refreshToken: string | null
}

/** With many groups they are long. Without one, the provider asks the person who signs out for a confirmation. */
const idTokenMax = 16 * 1024
const refreshTokenMax = 16 * 1024

/** Claims of the token count before those of the provider's page about the account, which is asked only for what is missing. */
export async function describeAccount(
  provider: SignInProvider,
  configuration: Configuration,
  tokens: TokenEndpointResponse,
  claims: IDToken,
): Promise<SignedInAccount> {
  const further = lacksClaims(provider, claims)
    ? await askForClaims(configuration, tokens, claims.sub)
    : {}
  const identity = readJoinedIdentity(claims, further, provider.claims)
  if (!identity) throw new SignInRefused('bad_token')
  const { id_token: idToken, refresh_token: refreshToken } = tokens
  const { sid } = claims
  return {
    identity,
    providerSession: typeof sid === 'string' && sid.length <= 255 ? sid : null,
    idToken: idToken !== undefined && idToken.length <= idTokenMax ? idToken : null,
    refreshToken:
      refreshToken !== undefined && refreshToken.length <= refreshTokenMax ? refreshToken : null,
  }
}

/** Many providers keep the token of a code flow short. */
function lacksClaims({ claims: names, mappings }: SignInProvider, claims: Claims): boolean {
  const identity = readIdentity(claims, names)
  if (!identity) return false
  const uses = (trait: string) => mappings.some((mapping) => mapping.trait === trait)
  return (
    identity.email === null ||
    !identity.isEmailVerified ||
    (uses('group') && identity.groups.length === 0 && !identity.lacksGroups) ||
    (uses('app_role') && identity.appRoles.length === 0) ||
    (uses('domain') && identity.domain === null)
  )
}

async function askForClaims(
  configuration: Configuration,
  { access_token: accessToken }: TokenEndpointResponse,
  subject: string,
): Promise<Claims> {
  if (configuration.serverMetadata().userinfo_endpoint === undefined) return {}
  try {
    return await fetchUserInfo(configuration, accessToken, subject)
  } catch (error) {
    throw explainProtocolError(error)
  }
}
