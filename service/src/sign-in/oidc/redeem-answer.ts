import {
  authorizationCodeGrant,
  type Configuration,
  type IDToken,
  type TokenEndpointResponse,
  type TokenEndpointResponseHelpers,
} from 'openid-client'

import type { SignInProvider } from '#sign-in/providers/read-sign-in.ts'
import { SignInRefused } from '#sign-in/sign-in-refused.ts'

import { describeAccount, type SignedInAccount } from './describe-account.ts'
import { explainProtocolError } from './explain-protocol-error.ts'
import type { Flow } from './flow-cookie.ts'
import { clockToleranceSeconds } from './open-provider.ts'

/** The code in an answer is redeemed with the verifier of the flow; state, issuer and nonce must be those of the flow. */
export async function redeemAnswer(
  provider: SignInProvider,
  configuration: Configuration,
  { flow, answer, now }: { flow: Flow; answer: URL; now: Date },
): Promise<SignedInAccount> {
  const tokens = await grant(configuration, answer, flow)
  const claims = tokens.claims()
  if (!claims) throw new SignInRefused('bad_token')
  requireFresh(claims, now)
  return describeAccount(provider, configuration, tokens, claims)
}

async function grant(
  configuration: Configuration,
  answer: URL,
  { state, nonce, verifier }: Flow,
): Promise<TokenEndpointResponse & TokenEndpointResponseHelpers> {
  try {
    return await authorizationCodeGrant(configuration, answer, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    })
  } catch (error) {
    throw explainProtocolError(error)
  }
}

/** A token that was issued just now tells how far the clocks are apart, in both directions. */
function requireFresh({ iat }: IDToken, now: Date) {
  const apart = Math.abs(iat - now.getTime() / 1000)
  if (apart > clockToleranceSeconds) {
    const cause = new Error(`iat is ${Math.round(apart)} s from now`)
    throw new SignInRefused('clocks_apart', { cause })
  }
}
