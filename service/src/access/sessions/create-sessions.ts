import type { FailedAttempts } from '#access/failed-attempts.ts'
import { createLookupCache } from '#access/lookup-cache.ts'
import type { HashKey } from '#access/secret.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'

import { createSessionAuthentication, sessionDependsOn } from './authenticate-session.ts'
import { createSessionSightings } from './session-sightings.ts'
import type { FoundSession } from './session-store.ts'

/** How long a process goes by what it has read of a session, even if it hears of no change. */
const freshMs = 5000

type Options = {
  db: Db
  now: Clock
  steadyNow: Clock
  log: Log
  hashKey: HashKey
  guessesByAddress: FailedAttempts
  /** How long a session lasts without a request. */
  idleMs: number
}

/** The sessions of people, as this process knows them. */
export function createSessions({ steadyNow, ...options }: Options) {
  const cache = createLookupCache<FoundSession>({
    now: steadyNow,
    // While the database is away there is nothing to administer, so no session needs to be known for longer.
    outageMs: 0,
    knownFreshMs: freshMs,
    dependsOn: sessionDependsOn,
  })
  const sightings = createSessionSightings(options.db, options.log)
  return {
    cache,
    authenticate: createSessionAuthentication({ ...options, cache, sightings }),
    stop: sightings.stop,
  }
}
