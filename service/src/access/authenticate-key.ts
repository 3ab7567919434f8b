import { timingSafeEqual } from 'node:crypto'

import type { Endpoint } from '@gatehouse/contract/endpoint'

import type { Principal } from '#http/principal.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { findKeyByHash, type FoundKey, rehashKey } from './credential-store.ts'
import type { Credential } from './credential.ts'
import type { FailedAttempts } from './failed-attempts.ts'
import type { KeyUses } from './key-uses.ts'
import { knownPermissions } from './known-permissions.ts'
import type { LookupCache } from './lookup-cache.ts'
import { type HashKey, type KeyHash, partsToKeep } from './secret.ts'
import { organizationSuspended, unauthorized } from './unauthorized.ts'

type KeyCache = LookupCache<FoundKey>

export type KeyTools = {
  db: Db
  now: Clock
  log: Log
  metrics: Metrics
  hashKey: HashKey
  cache: KeyCache
  guessesByAddress: FailedAttempts
  guessesByHint: FailedAttempts
  uses: KeyUses
}

/** A change of any of these makes what we know about a key void. */
export const keyDependsOn = (key: FoundKey) =>
  [key.id, key.organization_id, key.project_id].filter((id) => id !== null)

/** Recognises an administrator or project key whose form has been checked. */
export function createKeyAuthentication(tools: KeyTools) {
  return async (
    endpoint: Endpoint,
    credential: Credential,
    address: string,
  ): Promise<Principal> => {
    const key = await findKey(tools, credential.text, address)
    if (!key) throw unauthorized(endpoint, 'invalid_api_key', 'The key is not known.')
    refuseUnusable(endpoint, key, tools.now())
    tools.uses.note({ organizationId: key.organization_id, keyId: key.id, usedAt: tools.now() })
    return {
      kind: credential.kind,
      organizationId: key.organization_id,
      projectId: key.project_id,
      credentialId: key.id,
      permissions: new Set(knownPermissions(key.permissions)),
      plan: key.plan,
      paidMicroUsd: Number(key.paid_micro_usd),
    }
  }
}

async function findKey(tools: KeyTools, text: string, address: string) {
  const { cache, metrics, guessesByAddress, guessesByHint } = tools
  const hashes = tools.hashKey(text)
  const cacheKey = hashes[0].hash.toString('base64')
  const remembered = cache.peek(cacheKey)
  if (remembered !== undefined) {
    metrics.keyLookups.inc({ result: remembered ? 'remembered' : 'remembered_unknown' })
    return remembered ?? undefined
  }
  const { hint8 } = partsToKeep(text)
  if (!cache.wasKnown(cacheKey)) {
    guessesByAddress.refuseBlocked(address)
    guessesByHint.refuseBlocked(hint8)
  }
  const key = await cache.get(cacheKey, () => load(tools, hashes))
  metrics.keyLookups.inc({ result: key ? 'found' : 'unknown' })
  if (!key) {
    guessesByAddress.note(address, cacheKey)
    guessesByHint.note(hint8, cacheKey)
  }
  return key
}

async function load(
  { db, log }: KeyTools,
  hashes: readonly [KeyHash, ...KeyHash[]],
): Promise<FoundKey | undefined> {
  const found = await findKeyByHash(
    db,
    hashes.map(({ hash }) => hash),
  )
  if (!found || !hashes.some(({ hash }) => timingSafeEqual(hash, found.key_hash))) return undefined
  const [current] = hashes
  if (found.hash_version !== current.version) {
    // The caller need not wait; a failure leaves the older pepper in use until the next time.
    rehashKey(db, found, current).catch((error: unknown) => log.problem('rehashing a key', error))
  }
  return found
}

/** Why a key is refused is told only to somebody who sent the whole secret. */
function refuseUnusable(endpoint: Endpoint, key: FoundKey, now: Date) {
  if (key.revoked_at) throw unauthorized(endpoint, 'revoked_api_key', 'The key was revoked.')
  if (key.project_status === 'archived') {
    throw unauthorized(endpoint, 'revoked_api_key', 'The project of the key is archived.')
  }
  if (key.expires_at && key.expires_at <= now) {
    throw unauthorized(endpoint, 'expired_api_key', 'The key has expired.')
  }
  if (key.organization_status === 'suspended') throw organizationSuspended()
}
