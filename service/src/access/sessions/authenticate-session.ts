import { createHmac } from 'node:crypto'

import type { Endpoint } from '@gatehouse/contract/endpoint'
import type { Permission } from '@gatehouse/contract/permission'
import { rolePermissions } from '@gatehouse/contract/role'

import type { FailedAttempts } from '#access/failed-attempts.ts'
import { knownPermissions } from '#access/known-permissions.ts'
import type { LookupCache } from '#access/lookup-cache.ts'
import type { HashKey } from '#access/secret.ts'
import { organizationSuspended, unauthorized } from '#access/unauthorized.ts'
import type { Principal } from '#http/principal.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import type { SessionSightings } from './session-sightings.ts'
import { findSessionByHash, type FoundSession } from './session-store.ts'

type Deps = {
  db: Db
  now: Clock
  hashKey: HashKey
  cache: LookupCache<FoundSession>
  guessesByAddress: FailedAttempts
  sightings: SessionSightings
  idleMs: number
}

/** A secret that has the form of a session's, and how it came. */
type PresentedSession = { text: string; form: FoundSession['form'] }

/** The ids whose change makes a cached session void. */
export const sessionDependsOn = (session: FoundSession) =>
  [session.id, session.organization_id, session.member_id, session.key_id].filter(
    (id) => id !== null,
  )

/** Authenticates sessions whose form and checksum have been checked, with at most one query. */
export function createSessionAuthentication(deps: Deps) {
  const { db, now, hashKey, cache, guessesByAddress, sightings, idleMs } = deps
  /** Of the sessions in the cache: as long as a session is one object, so is its caller. */
  const principals = new WeakMap<FoundSession, Principal>()

  function accept(
    endpoint: Pick<Endpoint, 'path'>,
    { text, form }: PresentedSession,
    found: FoundSession | null,
  ) {
    const at = now()
    // A secret of the other form is one that was taken from its place.
    if (!found || found.form !== form || hasEnded(found, at, idleMs)) {
      throw unauthorized(endpoint, 'invalid_session', 'The session has ended; sign in again.')
    }
    if (found.organization_status === 'suspended') throw organizationSuspended()
    sightings.note(found, at)
    const known = principals.get(found)
    if (known) return known
    const principal = toPrincipal(found, text)
    principals.set(found, principal)
    return principal
  }

  return (
    endpoint: Pick<Endpoint, 'path'>,
    presented: PresentedSession,
    address: string,
  ): Principal | Promise<Principal> => {
    const hashes = hashKey(presented.text)
    const cacheKey = hashes[0].hash.toString('base64')
    const cached = cache.peek(cacheKey)
    if (cached !== undefined) return accept(endpoint, presented, cached)
    if (!cache.wasKnown(cacheKey)) guessesByAddress.refuseBlocked(address)
    const find = () =>
      findSessionByHash(
        db,
        hashes.map(({ hash }) => hash),
      )
    return cache.get(cacheKey, find).then((found) => {
      if (!found) guessesByAddress.note(address, cacheKey)
      return accept(endpoint, presented, found ?? null)
    })
  }
}

/** A session ends with its member's or its key's right to act. */
function hasEnded(session: FoundSession, now: Date, idleMs: number): boolean {
  const { ended_at, expires_at, last_seen_at, member_id, member_status } = session
  if (ended_at !== null || expires_at <= now) return true
  if (last_seen_at.getTime() + idleMs <= now.getTime()) return true
  if (member_id !== null) return member_status !== 'active'
  const { key_revoked_at, key_expires_at } = session
  return key_revoked_at !== null || (key_expires_at !== null && key_expires_at <= now)
}

function toPrincipal(session: FoundSession, secret: string): Principal {
  const owner = session.member_id ?? session.key_id ?? ''
  return {
    kind: 'session',
    organizationId: session.organization_id,
    projectId: null,
    projectName: null,
    credentialId: owner,
    subject: owner,
    userId: null,
    isBoundToProject: false,
    permissions: new Set(permissionsOf(session)),
    plan: session.plan,
    paidMicroUsd: Number(session.paid_micro_usd),
    limitOverrides: session.limit_overrides,
    budgets: null,
    allowedModels: null,
    projectLabels: null,
    member: memberOf(session),
    session: {
      id: session.id,
      csrfToken: session.form === 'browser' ? csrfTokenOf(secret) : null,
    },
  }
}

function permissionsOf({ member_role, key_permissions }: FoundSession): readonly Permission[] {
  if (member_role === null) return knownPermissions(key_permissions ?? [])
  // The database may hold a role of a newer release, which allows nothing here.
  return (rolePermissions as Partial<typeof rolePermissions>)[member_role] ?? []
}

function memberOf(session: FoundSession): Principal['member'] {
  const { member_id, member_email, member_name, member_role, project_roles } = session
  if (member_id === null || member_email === null || member_name === null || member_role === null) {
    return null
  }
  return {
    id: member_id,
    email: member_email,
    name: member_name,
    role: member_role,
    projectRoles: new Map(Object.entries(project_roles ?? {})),
  }
}

/** What only a page that was given it can send. It follows from the secret, and says nothing about it. */
const csrfTokenOf = (secret: string) =>
  createHmac('sha256', secret).update('gatehouse csrf token').digest('base64url')
