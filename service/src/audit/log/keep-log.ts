import { repeat } from '#platform/background/repeat.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { keepTiles } from './keep-tiles.ts'
import { stopCursorsOfOtherServer } from './log-store.ts'
import { sequenceEvents } from './sequence-events.ts'
import { publishKeys, signCheckpoints } from './sign-checkpoints.ts'
import type { SigningKeys } from './signing-keys.ts'

/** How long the worker waits for new events after it has found none, and after it has found some. */
const idleMs = 1000
const busyMs = 100
const signEveryMs = 5000
const tileEveryMs = 30_000
const checkEveryMs = 10_000

type Deps = {
  db: Db
  now: Clock
  log: Log
  metrics: Metrics
  /** Without keys there are no checkpoints. */
  keys: SigningKeys | undefined
}

/** Numbers events, signs checkpoints and keeps tiles, until `signal` aborts. */
export async function keepAuditLog({ keys, ...deps }: Deps, signal: AbortSignal) {
  const tryTiling = createAttempt(deps, 'audit_tiles_failed')
  const tryChecking = createAttempt(deps, 'audit_cursor_not_checked')
  // First: as soon as anything is numbered, it may be too late to see that the database was moved.
  await tryChecking(() => checkCursor(deps))
  await Promise.all([
    numberEvents(deps, signal),
    keys ? sign({ ...deps, keys }, signal) : undefined,
    repeat(signal, async () => {
      await tryTiling(() => keepTiles(deps.db))
      return tileEveryMs
    }),
    repeat(signal, async () => {
      await tryChecking(() => checkCursor(deps))
      return checkEveryMs
    }),
  ])
}

/** On a server that has given fewer transaction numbers than the one before, new events look as if they had been numbered. */
export async function checkCursor({ db, log, metrics }: Pick<Deps, 'db' | 'log' | 'metrics'>) {
  const isStopped = await stopCursorsOfOtherServer(db)
  metrics.auditNumberingStopped.set(isStopped ? 1 : 0)
  if (!isStopped) return
  log.problem(
    'audit_cursor_ahead',
    new Error(
      'The database has transaction numbers of another server, so new audit events get no numbers and are not exported. Run: gatehouse operator audit resume',
    ),
  )
}

function numberEvents(deps: Omit<Deps, 'keys'>, signal: AbortSignal) {
  const tryNumbering = createAttempt(deps, 'audit_sequencing_failed')
  return repeat(signal, async () => {
    const numbered = await tryNumbering(() => sequenceEvents(deps.db))
    if (!numbered) return idleMs
    deps.metrics.auditEventsNumbered.inc(numbered.events)
    if (numbered.hasMore) return 0
    return numbered.events > 0 ? busyMs : idleMs
  })
}

async function sign(deps: Omit<Deps, 'keys'> & { keys: SigningKeys }, signal: AbortSignal) {
  const tryPublishing = createAttempt(deps, 'audit_keys_not_published')
  const trySigning = createAttempt(deps, 'audit_checkpoints_failed')
  let isPublished = false
  await repeat(signal, async () => {
    isPublished ||=
      (await tryPublishing(async () => {
        await publishKeys(deps)
        return true
      })) ?? false
    if (!isPublished) return signEveryMs
    const signed = await trySigning(() => signCheckpoints(deps))
    deps.metrics.auditCheckpoints.inc(signed ?? 0)
    return signed ? 0 : signEveryMs
  })
}

/** Logs failures of one kind, which repeat for as long as the database is away, now and then. Returns undefined then. */
function createAttempt({ log, now }: { log: Log; now: Clock }, failureCode: string) {
  const throttle = createLogThrottle({ log, now })
  return async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work()
    } catch (error) {
      throttle(failureCode, error)
      return undefined
    }
  }
}
