import type { JWTVerifyGetKey } from 'jose'

import type { SecretBox } from '#platform/secrets.ts'
import type { SignInDeps } from '#sign-in/deps.ts'
import type { OpenProvider } from '#sign-in/oidc/open-provider.ts'
import type { SignInProvider, SignInSettings } from '#sign-in/providers/read-sign-in.ts'
import { SignInRefused } from '#sign-in/sign-in-refused.ts'

/** What the pages of providers depend on, besides what all pages of sign-in do. */
export type ProviderDeps = SignInDeps & {
  /** As the operator's file is now. */
  settings: () => SignInSettings
  openProvider: OpenProvider
  secretBox: SecretBox
  /** The keys at an address that a provider has named. */
  keysAt: (jwksUrl: string) => JWTVerifyGetKey
}

/** The provider of the address, for the record of a refusal; never what a caller has made up. */
export function methodOf({ settings }: ProviderDeps, params: unknown): string {
  const { provider: id } = params as { provider?: string }
  return settings().providers.find((each) => each.id === id)?.id ?? 'unknown'
}

export function requireProvider({ settings }: ProviderDeps, params: unknown): SignInProvider {
  const { provider: id } = params as { provider?: string }
  const found = settings().providers.find((each) => each.id === id)
  if (!found) throw new SignInRefused('unknown_provider')
  return found
}

/** The address that providers must know, and that their answers go to. */
export const redirectUriOf = (publicUrl: string, { id }: SignInProvider) =>
  `${publicUrl}/auth/${id}/callback`
