import { type Configuration, refreshTokenGrant, ResponseBodyError } from 'openid-client'

import type { SignInProvider } from '#sign-in/providers/read-sign-in.ts'
import { SignInRefused } from '#sign-in/sign-in-refused.ts'

import { describeAccount, type SignedInAccount } from './describe-account.ts'
import { explainProtocolError } from './explain-protocol-error.ts'

type Refreshed = Omit<SignedInAccount, 'identity'> & {
  /** Null: the sign-in still holds, but the answer does not describe the account. */
  identity: SignedInAccount['identity'] | null
}

/** What a provider says now about an account that has signed in before; null: it has ended the sign-in. */
export async function refreshAccount(
  provider: SignInProvider,
  configuration: Configuration,
  { subject, refreshToken }: { subject: string; refreshToken: string },
): Promise<Refreshed | null> {
  try {
    const tokens = await refreshTokenGrant(configuration, refreshToken)
    const next = tokens.refresh_token ?? refreshToken
    const claims = tokens.claims()
    // What is missing in an answer without a token of the account is not what the account has lost.
    if (!claims) return { identity: null, providerSession: null, idToken: null, refreshToken: next }
    if (claims.sub !== subject) throw new SignInRefused('bad_token')
    const account = await describeAccount(provider, configuration, tokens, claims)
    return { ...account, refreshToken: next }
  } catch (error) {
    if (error instanceof ResponseBodyError && error.error === 'invalid_grant') return null
    throw explainProtocolError(error)
  }
}
