import { timingSafeEqual } from 'node:crypto'

import type { Endpoint } from '@gatehouse/contract/endpoint'

import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { findKeyByHash, type FoundKey, rehashKey } from './credential-store.ts'
import type { Credential } from './credential.ts'
import type { FailedAttempts } from './failed-attempts.ts'
import type { KeyUses } from './key-uses.ts'
import { knownPermissions } from './known-permissions.ts'
import type { ShareParts } from './labels/share-parts.ts'
import { toOwnBudgets } from './limit-overrides/own-budget.ts'
import type { LookupCache } from './lookup-cache.ts'
import { type HashKey, type KeyHash, partsToKeep } from './secret.ts'
import { organizationSuspended, unauthorized } from './unauthorized.ts'

type KeyCache = LookupCache<FoundKey>

export type KeyDeps = {
  db: Db
  now: Clock
  log: Log
  metrics: Metrics
  hashKey: HashKey
  onKeyVerified: (version: number) => void
  cache: KeyCache
  guessesByAddress: FailedAttempts
  guessesByHint: FailedAttempts
  uses: KeyUses
  shareParts: ShareParts
}

/** What was called: an endpoint, or a page that takes a key. */
type Place = Pick<Endpoint, 'path'>

/** The ids whose change makes a cached key void. */
export const keyDependsOn = (key: FoundKey) =>
  [key.id, key.organization_id, key.project_id, key.member_id].filter((id) => id !== null)

/** Authenticates administrator and project keys whose form and checksum have been checked. */
export function createKeyAuthentication(deps: KeyDeps) {
  /** Of the keys in the cache: as long as a key is one object, so is its caller. */
  const principals = new WeakMap<FoundKey, Principal>()

  function accept(endpoint: Place, credential: Credential, key: FoundKey | null): Principal {
    if (!key) throw unauthorized(endpoint, 'invalid_api_key', 'The key does not exist.')
    const now = deps.now()
    try {
      refuseUnusable(endpoint, key, now)
    } catch (error) {
      if (error instanceof ApiError) error.refusedCaller = callerOf(key)
      throw error
    }
    deps.uses.note({ organizationId: key.organization_id, keyId: key.id, usedAt: now })
    const known = principals.get(key)
    if (known) return known
    const principal = toPrincipal(key, credential)
    principals.set(key, principal)
    return principal
  }

  /** Returns the caller at once if the key is in the cache, as it is for nearly every call. */
  return (
    endpoint: Place,
    credential: Credential,
    address: string,
  ): Principal | Promise<Principal> => {
    const hashes = deps.hashKey(credential.text)
    const cacheKey = hashes[0].hash.toString('base64')
    const cached = deps.cache.peek(cacheKey)
    if (cached !== undefined) {
      deps.metrics.keyLookups.inc({ result: cached ? 'remembered' : 'remembered_unknown' })
      return accept(endpoint, credential, cached)
    }
    const sought = { text: credential.text, hashes, cacheKey, address }
    return findKey(deps, sought).then((key) => accept(endpoint, credential, key ?? null))
  }
}

/** Whose key it is, for the counts of refusals. */
const callerOf = (key: FoundKey) => ({
  organizationId: key.organization_id,
  projectId: key.project_id,
  credentialId: key.id,
})

const toPrincipal = (key: FoundKey, { kind }: Credential): Principal => ({
  kind,
  organizationId: key.organization_id,
  projectId: key.project_id,
  projectName: key.project_name,
  projectLabels: key.project_labels,
  credentialId: key.id,
  subject: key.id,
  userId: key.member_id,
  isBoundToProject: key.project_id !== null,
  permissions: new Set(knownPermissions(key.permissions)),
  plan: key.plan,
  paidMicroUsd: Number(key.paid_micro_usd),
  limitOverrides: key.limit_overrides,
  budgets: toOwnBudgets(key.project_budget, key.monthly_budget),
  allowedModels: key.allowed_models,
  member: null,
  session: null,
})

type Sought = {
  text: string
  hashes: readonly [KeyHash, ...KeyHash[]]
  cacheKey: string
  address: string
}

async function findKey(deps: KeyDeps, { text, hashes, cacheKey, address }: Sought) {
  const { cache, metrics, guessesByAddress, guessesByHint } = deps
  const { hint8 } = partsToKeep(text)
  if (!cache.wasKnown(cacheKey)) {
    guessesByAddress.refuseBlocked(address)
    guessesByHint.refuseBlocked(hint8)
  }
  const key = await cache.get(cacheKey, () => load(deps, hashes))
  metrics.keyLookups.inc({ result: key ? 'found' : 'unknown' })
  if (!key) {
    guessesByAddress.note(address, cacheKey)
    guessesByHint.note(hint8, cacheKey)
  }
  return key
}

async function load(
  { db, log, onKeyVerified, shareParts }: KeyDeps,
  hashes: readonly [KeyHash, ...KeyHash[]],
): Promise<FoundKey | undefined> {
  const found = await findKeyByHash(
    db,
    hashes.map(({ hash }) => hash),
  )
  const verified = found && hashes.find(({ hash }) => timingSafeEqual(hash, found.key_hash))
  if (!verified) return undefined
  onKeyVerified(verified.version)
  const [current] = hashes
  if (found.hash_version !== current.version) {
    // Not awaited. After a failure the key stays on its older pepper until it is next looked up.
    rehashKey(db, found, current).catch((error: unknown) => log.problem('key_rehash_failed', error))
  }
  return shareParts(found)
}

/** The reason is sent only to callers that presented the whole secret. */
function refuseUnusable(endpoint: Place, key: FoundKey, now: Date) {
  if (key.revoked_at) {
    throw unauthorized(endpoint, 'revoked_api_key', 'The key was revoked; use another one.')
  }
  if (key.project_status === 'archived') {
    throw unauthorized(
      endpoint,
      'revoked_api_key',
      'The project of the key is archived; use a key of another project.',
    )
  }
  refuseWithoutPerson(endpoint, key)
  if (key.expires_at && key.expires_at <= now) {
    throw unauthorized(endpoint, 'expired_api_key', 'The key has expired; create a new one.')
  }
  if (key.organization_status === 'suspended') throw organizationSuspended()
}

/** The key of a person works as long as the person may work in its project. */
function refuseWithoutPerson(endpoint: Place, key: FoundKey) {
  if (key.member_id === null) return
  if (key.member_status === null || key.member_project_role === null) {
    throw unauthorized(
      endpoint,
      'revoked_api_key',
      'The person whom the key belonged to has left its project; use another key.',
    )
  }
  if (key.member_status !== 'active') {
    throw unauthorized(
      endpoint,
      'revoked_api_key',
      'The person whom the key belongs to is suspended; use another key.',
    )
  }
}
