import {
  lockMembers,
  readManager,
  requireMember,
  requireMayTouch,
} from '#access/members/change-member.ts'
import { endSessionsOf, type SessionRow } from '#access/sessions/session-store.ts'
import { announceEnds } from '#access/sessions/start-session.ts'
import type { Announce } from '#audit/announce.ts'
import { callerOf } from '#audit/event.ts'
import type { Principal } from '#http/principal.ts'
import type { Clock } from '#platform/clock.ts'
import type { Tx } from '#platform/database.ts'

type Caller = { principal: Principal; requestId: string }
type Ended = {
  memberId: string
  /** Undefined: all of them. */
  sessionId?: string
}
type Deps = { announce: Announce; now: Clock }

/**
 * Ends open sessions of a member, or one of them; returns those that have ended now. People end their own. Those of an owner
 * are ended by owners only: an administrator who could sign owners out again and again would keep them from doing anything.
 */
export async function endMemberSessions(
  tx: Tx,
  { memberId, sessionId }: Ended,
  caller: Caller,
  { announce, now }: Deps,
): Promise<SessionRow[]> {
  const { organizationId, member: self } = caller.principal
  if (self?.id === memberId) {
    await requireMember(tx, organizationId, memberId)
  } else {
    await lockMembers(tx, organizationId)
    const manager = await readManager(tx, caller)
    await requireMayTouch(tx, await requireMember(tx, organizationId, memberId), manager)
  }
  const ended = await endSessionsOf(tx, { organizationId, memberId }, now(), sessionId)
  await announceEnds(tx, ended, { by: callerOf(caller), action: 'ended' }, announce)
  return ended
}
