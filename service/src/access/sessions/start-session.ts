import { randomBytes } from 'node:crypto'

import { formatKey, type HashKey } from '#access/secret.ts'
import type { Actor } from '#audit/actor.ts'
import type { Announce } from '#audit/announce.ts'
import { callerOf } from '#audit/event.ts'
import type { Principal } from '#http/principal.ts'
import type { Tx } from '#platform/database.ts'
import { createId } from '#platform/id.ts'

import { presentSession } from './present-session.ts'
import {
  endOldest,
  endSessionsOf,
  insertSession,
  lockOwner,
  type NewSession,
  type SessionOwner,
  type SessionRow,
} from './session-store.ts'

/** How many open sessions a member or a key may have; with one more, the oldest ends. */
export const sessionsMax = 20

export type SessionDeps = {
  hashKey: HashKey
  announce: Announce
  /** How long a session lasts at most, from its start. */
  sessionMaxMs: number
}

type Start = {
  owner: SessionOwner
  form: NewSession['form']
  /** How the person has signed in: `key`, `link`, `device`, or the name of a provider. */
  method: string
  requestId: string | null
  now: Date
}

export type StartedSession = {
  id: string
  /** The secret, which is stored nowhere. */
  token: string
  expiresAt: Date
}

/**
 * Starts a session and writes its event. Undefined when its owner may not sign in: only active members may, and
 * administrator keys that are valid.
 */
export async function startSession(
  tx: Tx,
  { owner, form, method, requestId, now }: Start,
  { hashKey, announce, sessionMaxMs }: SessionDeps,
): Promise<StartedSession | undefined> {
  const actor = await lockOwner(tx, owner, now)
  if (!actor) return undefined
  const { organizationId } = owner
  const by = { ...actor, requestId }
  const ended = await endOldest(tx, owner, sessionsMax - 1, now)
  await announceEnds(tx, ended, { by, action: 'ended' }, announce)
  const token = formatKey('gate_ses_', randomBytes(32))
  const row = await insertSession(tx, owner, {
    id: createId('ses', now),
    form,
    method,
    hash: hashKey(token)[0].hash,
    createdAt: now,
    expiresAt: new Date(now.getTime() + sessionMaxMs),
  })
  const after = presentSession(row)
  await announce(tx, { organizationId, by, action: 'signed_in', before: null, after })
  return { id: row.id, token, expiresAt: row.expires_at }
}

type End = { by: Actor; action: 'ended' | 'signed_out' }

/** Writes the events of sessions that have just ended, and makes every process forget them. */
export async function announceEnds(
  tx: Tx,
  ended: readonly SessionRow[],
  { by, action }: End,
  announce: Announce,
) {
  for (const row of ended) {
    await announce(tx, {
      organizationId: row.organization_id,
      by,
      action,
      before: presentSession(row),
      after: null,
      notifies: 'session',
    })
  }
}

type OwnEnd = { requestId: string; now: Date; action: End['action'] }

/** Ends the session that a call came with, if it is still open. */
export async function endSession(
  tx: Tx,
  principal: Principal,
  { requestId, now, action }: OwnEnd,
  { announce }: Pick<SessionDeps, 'announce'>,
) {
  const { organizationId, credentialId, member, session } = principal
  const owner = member
    ? { organizationId, memberId: member.id }
    : { organizationId, keyId: credentialId }
  const ended = await endSessionsOf(tx, owner, now, session?.id ?? '')
  await announceEnds(tx, ended, { by: callerOf({ principal, requestId }), action }, announce)
}
