import {
  allowInsecureRequests,
  ClientError,
  ClientSecretBasic,
  ClientSecretPost,
  clockSkew,
  clockTolerance,
  Configuration,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  type ServerMetadata,
} from 'openid-client'

import type { Clock } from '#platform/clock.ts'
import type { Egress } from '#platform/egress.ts'
import type { SignInProvider } from '#sign-in/providers/read-sign-in.ts'
import { SignInRefused } from '#sign-in/sign-in-refused.ts'

import { createProviderFetch } from './provider-fetch.ts'

/** How far the clocks of a provider and of this process may be apart. */
export const clockToleranceSeconds = 60

const freshMs = 10 * 60_000
/** What is known of a provider is used for this long while it cannot be asked. */
const staleMs = 24 * 60 * 60_000
const pauseMs = 5000
const knownMax = 100

type Deps = { egress: Pick<Egress, 'request'>; now: Clock; steadyNow: Clock }

type Known = { atMs: number; metadata: ServerMetadata }
type Asked = { known?: Known; failedAtMs?: number; asking?: Promise<Known> }

/**
 * Opens providers for the protocol's library. Each one is asked for its addresses every ten minutes, by one request at a time, and
 * after a failure not again for five seconds, however many persons sign in.
 */
export function createProviderOpener({ egress, now, steadyNow }: Deps) {
  const fetch = createProviderFetch(egress)
  const asked = new Map<string, Asked>()

  async function discover({ issuer, clientId }: SignInProvider): Promise<Known> {
    const found = await discovery(new URL(issuer), clientId, undefined, undefined, {
      [customFetch]: fetch,
      ...(isPlain(issuer) ? { execute: [allowInsecureRequests] } : {}),
    })
    const metadata = found.serverMetadata()
    // The library lets some hosts name another issuer, of which accounts of every tenant would be accepted.
    if (new URL(metadata.issuer).href !== new URL(issuer).href) {
      throw new SignInRefused('wrong_issuer')
    }
    return { atMs: steadyNow().getTime(), metadata }
  }

  async function find(provider: SignInProvider): Promise<ServerMetadata> {
    const entry = asked.get(provider.issuer) ?? remember(asked, provider.issuer)
    const atMs = steadyNow().getTime()
    if (entry.known && atMs - entry.known.atMs < freshMs) return entry.known.metadata
    const mayAsk = entry.failedAtMs === undefined || atMs - entry.failedAtMs >= pauseMs
    try {
      if (!mayAsk) throw new SignInRefused('provider_unavailable')
      entry.asking ??= discover(provider).finally(() => delete entry.asking)
      entry.known = await entry.asking
      delete entry.failedAtMs
      return entry.known.metadata
    } catch (error) {
      if (mayAsk) entry.failedAtMs = atMs
      if (entry.known && atMs - entry.known.atMs < staleMs) return entry.known.metadata
      throw toRefusal(error)
    }
  }

  return async (provider: SignInProvider): Promise<Configuration> => {
    const metadata = await find(provider)
    const skew = Math.round((now().getTime() - Date.now()) / 1000)
    const configuration = new Configuration(
      metadata,
      provider.clientId,
      { [clockSkew]: skew, [clockTolerance]: clockToleranceSeconds },
      authenticationOf(provider, metadata),
    )
    configuration[customFetch] = fetch
    // Tokens come from the provider itself, but their signatures cost little and the way may be plain HTTP.
    enableNonRepudiationChecks(configuration)
    if (isPlain(provider.issuer)) allowInsecureRequests(configuration)
    return configuration
  }
}
export type OpenProvider = ReturnType<typeof createProviderOpener>

/** The guarded client allows it for the operator's own targets only. */
const isPlain = (issuer: string) => issuer.startsWith('http:')

function remember(asked: Map<string, Asked>, issuer: string): Asked {
  // Issuers come from the operator's file, so a full map means that the file has changed often.
  if (asked.size >= knownMax) asked.clear()
  const entry: Asked = {}
  asked.set(issuer, entry)
  return entry
}

/** In the body where the provider allows it, because the header needs an encoding that some providers read differently. */
function authenticationOf({ clientSecret }: SignInProvider, metadata: ServerMetadata) {
  const supported = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
  return supported.includes('client_secret_post')
    ? ClientSecretPost(clientSecret)
    : ClientSecretBasic(clientSecret)
}

function toRefusal(error: unknown): SignInRefused {
  if (error instanceof SignInRefused) return error
  const isOther =
    error instanceof ClientError && error.code === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED'
  return new SignInRefused(isOther ? 'wrong_issuer' : 'provider_unavailable', { cause: error })
}
