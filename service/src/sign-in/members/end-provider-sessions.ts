import { endSessionsOf } from '#access/sessions/session-store.ts'
import { announceEnds } from '#access/sessions/start-session.ts'
import type { Tx } from '#platform/database.ts'

import type { OpenProviderSession } from './provider-session-store.ts'
import type { ReviewDeps } from './review-membership.ts'

/** Ends sessions that their provider has ended, or no longer vouches for. */
export async function endProviderSessions(
  tx: Tx,
  sessions: readonly OpenProviderSession[],
  { announce, now, by }: ReviewDeps,
) {
  // In one order in every transaction, so that two of them never wait for each other.
  const ordered = sessions.toSorted((one, other) => (one.session_id < other.session_id ? -1 : 1))
  for (const { organization_id: organizationId, member_id: memberId, session_id } of ordered) {
    const ended = await endSessionsOf(tx, { organizationId, memberId }, now, session_id)
    await announceEnds(tx, ended, { by, action: 'ended' }, announce)
  }
}
