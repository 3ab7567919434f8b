import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'

import { type FoundSession, writeSighting } from './session-store.ts'

/** How often the database learns that a session is in use. */
const everyMs = 60_000
/** Further sightings wait for the next request of their session. */
const atOnceMax = 4

/** Writes when sessions were last seen, each at most once a minute. No request waits for it. */
export function createSessionSightings(db: Db, log: Log) {
  const open = new Set<Promise<void>>()
  return {
    note(session: FoundSession, now: Date) {
      const before = new Date(now.getTime() - everyMs)
      if (session.last_seen_at >= before || open.size >= atOnceMax) return
      session.last_seen_at = now
      const { organization_id: organizationId, id: sessionId } = session
      const writing = writeSighting(db, { organizationId, sessionId, at: now, before })
        .catch((error: unknown) => log.problem('session_use_not_written', error))
        .finally(() => open.delete(writing))
      open.add(writing)
    },
    async stop() {
      await Promise.all(open)
    },
  }
}
export type SessionSightings = ReturnType<typeof createSessionSightings>
