import type { Subscriber } from '#audit/follow-changes.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Egress } from '#platform/egress.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { deriveKeys, type Keyring } from '#platform/secrets.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import { createJwtAuthentication, tenancyDependsOn } from './authenticate-jwt.ts'
import { createKeyAuthentication, keyDependsOn } from './authenticate-key.ts'
import type { FoundKey, Tenancy } from './credential-store.ts'
import { createFailedAttempts } from './failed-attempts.ts'
import { createFreeTier } from './free-tier/free-tier.ts'
import type { Authentication } from './guard.ts'
import { createIssuerKeys } from './issuer-keys.ts'
import type { IssuerTable } from './issuer-table.ts'
import { keepKeysOnDisk } from './keep-keys-on-disk.ts'
import { createKeyUses } from './key-uses.ts'
import { createSharing } from './labels/share-parts.ts'
import { createLookupCache } from './lookup-cache.ts'
import { createProjectCheck } from './named-project.ts'
import type { HashKey } from './secret.ts'
import { createSessions } from './sessions/create-sessions.ts'
import { browserAccess } from './sessions/session-cookie.ts'

type Options = {
  db: Db
  now: Clock
  steadyNow: Clock
  log: Log
  metrics: Metrics
  egress: Egress
  files: TrustedFiles
  masterKeys: Keyring
  hashKey: HashKey
  /** A key of the database has proved that the master key of this version is the right one. */
  onKeyVerified: (version: number) => void
  issuers: IssuerTable
  /** How long cached credentials stay valid while the database is unreachable. */
  outageMs: number
  /** Where browsers find this gateway; undefined: there is no sign-in. */
  publicUrl: string | undefined
  areSessionsReadOnly: boolean
  sessionMaxMs: number
  /** How long a session lasts without a request. */
  sessionIdleMs: number
  freeTier: { requestsPerDay: number; creditsMax: bigint }
}

/** Authentication: keys, tokens, and the free request of callers without either. */
export function createAccess(options: Options) {
  const { db, now, steadyNow, log, egress, files, masterKeys, outageMs } = options
  const caching = { now: steadyNow, outageMs }
  const uses = createKeyUses(db, log)
  const shareParts = createSharing()
  const keys = createLookupCache<FoundKey>({ ...caching, dependsOn: keyDependsOn })
  const tenancies = createLookupCache<Tenancy>({ ...caching, dependsOn: tenancyDependsOn })
  const keyFile = keepKeysOnDisk({ cache: keys, files, outageMs, log })
  const guesses = countGuesses(options)
  const guessesByAddress = guesses.ofKeysByAddress
  const sessions = createSessions({ ...options, guessesByAddress, idleMs: options.sessionIdleMs })
  const authentication: Authentication = {
    refusedByAddress: guesses.ofTokensByAddress,
    byKey: createKeyAuthentication({
      ...options,
      uses,
      guessesByAddress,
      guessesByHint: guesses.byHint,
      cache: keys,
      shareParts,
    }),
    bySession: sessions.authenticate,
    browser: options.publicUrl === undefined ? null : browserAccess(options.publicUrl),
    areSessionsReadOnly: options.areSessionsReadOnly,
    requireOwnProject: createProjectCheck({ db, tenancies, shareParts }),
    byJwt: createJwtAuthentication({
      db,
      now,
      tenancies,
      shareParts,
      issuers: options.issuers,
      keysOf: ({ jwks_url }) => createIssuerKeys(jwks_url, { egress, steadyNow, log, files }),
    }),
  }
  return {
    authentication,
    sessionMaxMs: options.sessionMaxMs,
    sessionIdleMs: options.sessionIdleMs,
    freeTier: createFreeTier({
      db,
      now,
      steadyNow,
      log,
      keys: deriveKeys(masterKeys, 'free-request-identity'),
      ...options.freeTier,
    }),
    /** Order matters: the file on disk is written from the cache, so the cache forgets first. */
    subscribers: [
      createCacheSubscriber(keys),
      createCacheSubscriber(tenancies),
      createCacheSubscriber(sessions.cache),
      createFileSubscriber(keyFile),
    ],
    async stop() {
      await uses.stop()
      await sessions.stop()
      await keyFile.stop()
    },
  }
}

function countGuesses({ now, steadyNow, metrics }: Options) {
  const counting = { now, steadyNow, onRefused: () => metrics.guessesRefused.inc() }
  const byAddress = { ...counting, countedBy: 'address' }
  return {
    /** Also of sessions. */
    ofKeysByAddress: createFailedAttempts({ ...byAddress, guessesMax: 10 }),
    ofTokensByAddress: createFailedAttempts({
      ...byAddress,
      guessKind: 'refused tokens',
      guessesMax: 100,
    }),
    byHint: createFailedAttempts({ ...counting, countedBy: 'key', guessesMax: 20 }),
  }
}

type Cache = { forget(objectId: string): void; forgetAll(): void }

const createCacheSubscriber = (cache: Cache): Subscriber => ({
  onChange: ({ objectId }) => cache.forget(objectId),
  onGap: cache.forgetAll,
})

type KeyFile = { onForgotten: () => void; onGap: () => void }

/** A key that the cache has forgotten must not come back from the file after a restart. */
const createFileSubscriber = (file: KeyFile): Subscriber => ({
  onChange: ({ kind }) => {
    if (!kind.startsWith('policy') && kind !== 'session') file.onForgotten()
  },
  onGap: file.onGap,
})
