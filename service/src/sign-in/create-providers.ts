import type { JWTVerifyGetKey } from 'jose'

import { createIssuerKeys } from '#access/issuer-keys.ts'
import type { Clock } from '#platform/clock.ts'
import type { Egress } from '#platform/egress.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import { createProviderOpener } from './oidc/open-provider.ts'
import { followSignInFile } from './providers/follow-sign-in-file.ts'
import type { ReadSecret } from './providers/read-sign-in.ts'

export type ProvidersOptions = {
  /** Without a file there are no providers. */
  file: string | undefined
  readSecret: ReadSecret
  egress: Egress
  now: Clock
  steadyNow: Clock
  log: Log
  metrics: Metrics
  files: TrustedFiles
}

const keysMax = 100

/** The providers of the operator's file, as they are now. */
export function createProviders(options: ProvidersOptions) {
  const following = followSignInFile(options)
  const keys = new Map<string, JWTVerifyGetKey>()
  return {
    settings: following.current,
    openProvider: createProviderOpener(options),
    /** Fetched at most every 30 seconds, however many tokens come with unknown keys. */
    keysAt(jwksUrl: string): JWTVerifyGetKey {
      const known = keys.get(jwksUrl)
      if (known) return known
      // Providers are the operator's, so a full map means that they have changed often.
      if (keys.size >= keysMax) keys.clear()
      const added = createIssuerKeys(jwksUrl, options)
      keys.set(jwksUrl, added)
      return added
    },
    stop: following.stop,
  }
}
