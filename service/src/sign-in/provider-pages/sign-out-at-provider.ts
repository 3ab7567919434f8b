import type { Principal } from '#http/principal.ts'
import { findProviderSession } from '#sign-in/members/provider-session-store.ts'
import { openToken } from '#sign-in/members/provider-tokens.ts'
import { endAtProvider } from '#sign-in/oidc/end-at-provider.ts'

import type { ProviderDeps } from './provider-deps.ts'

type Deps = Pick<ProviderDeps, 'db' | 'log' | 'settings' | 'openProvider' | 'secretBox'>

/**
 * Where a browser signs out at the provider too, after its session here has ended. Null if the session came from no provider, or if
 * the provider has no such page or does not answer: signing out here never depends on it.
 */
export async function findWayOut(
  { organizationId, session }: Principal,
  publicUrl: string,
  { db, log, settings, openProvider, secretBox }: Deps,
): Promise<string | null> {
  if (!session) return null
  try {
    const row = await findProviderSession(db, organizationId, session.id)
    const provider = row && settings().providers.find(({ issuer }) => issuer === row.issuer)
    if (!provider) return null
    const idToken = openToken(secretBox, 'id_token', row)
    const returnUrl = `${publicUrl}/auth/sign_in`
    return endAtProvider(await openProvider(provider), { idToken, returnUrl })?.href ?? null
  } catch (error) {
    log.problem('sign_out_at_provider_failed', error)
    return null
  }
}
