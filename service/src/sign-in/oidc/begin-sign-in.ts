import {
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  type Configuration,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from 'openid-client'

import type { SignInProvider } from '#sign-in/providers/read-sign-in.ts'

import type { Flow } from './flow-cookie.ts'

type Wanted = Pick<Flow, 'returnTo' | 'organizationId' | 'invitation'> & {
  redirectUri: string
  now: Date
}

/** The provider's page where the person signs in, and what the browser has to remember until the answer comes. */
export async function beginSignIn(
  provider: SignInProvider,
  configuration: Configuration,
  { redirectUri, now, ...wanted }: Wanted,
): Promise<{ url: URL; flow: Flow }> {
  const flow: Flow = {
    ...wanted,
    provider: provider.id,
    state: randomState(),
    nonce: randomNonce(),
    verifier: randomPKCECodeVerifier(),
    startedAtMs: now.getTime(),
  }
  const url = buildAuthorizationUrl(configuration, {
    ...provider.parameters,
    redirect_uri: redirectUri,
    scope: provider.scopes.join(' '),
    state: flow.state,
    nonce: flow.nonce,
    code_challenge: await calculatePKCECodeChallenge(flow.verifier),
    code_challenge_method: 'S256',
  })
  return { url, flow }
}
