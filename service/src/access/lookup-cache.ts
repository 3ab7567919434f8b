import type { Clock } from '#platform/clock.ts'
import { isStoreAway } from '#platform/to-api-error.ts'

import { createCredentialMemory, type Entries } from './credential-memory.ts'

type Options<Value> = {
  now: Clock
  /** How long known values may be served while the database is unreachable. */
  outageMs: number
  /** The ids of the objects a value was read from; a change of any of them makes the value void. */
  dependsOn: (value: Value) => readonly string[]
  entriesMax?: number
  /** How long known values are served without a query; a minute unless given. */
  knownFreshMs?: number
}

const unknownFreshMs = 2000
/**
 * During an outage not every caller queries the database, since each would wait for a timeout: after a
 * pause of `pauseMs` one caller queries again, for `probeMs` at most, and the others get cached values.
 */
const pauseMs = 1000
const probeMs = 8000

/**
 * Caches what credentials resolve to. Known values live for a minute, or as long as the options say, and are dropped at once when an
 * object they depend on changes; unknown credentials live for two seconds. While the database is
 * unreachable, known values are served until they are `outageMs` old, and unseen credentials fail.
 */
export function createLookupCache<Value>(options: Options<Value>) {
  const { now, outageMs, dependsOn, entriesMax = 100_000, knownFreshMs = 60_000 } = options
  const memory = createCredentialMemory({ now, dependsOn, entriesMax })
  const loading = new Map<string, Promise<Value | undefined>>()
  let changes = 0
  const outage = createOutage(now)

  async function load(key: string, fetch: () => Promise<Value | undefined>) {
    const changesBefore = changes
    const value = await fetch()
    // A value that was read while a change arrived may be older than the change: used, not cached.
    if (changes !== changesBefore) return value
    if (value === undefined) memory.rememberUnknown(key)
    else memory.remember(key, value)
    return value
  }

  /** Callers that come after a change must not join a query that began before it. */
  const noteChange = () => {
    changes++
    loading.clear()
  }

  return {
    /** The cached value: undefined when the database must be queried, null for an unknown credential. */
    peek(key: string): Value | null | undefined {
      const nowMs = now().getTime()
      const entry = memory.known(key)
      const freshMs = outage.isPausing() ? Math.max(outageMs, knownFreshMs) : knownFreshMs
      if (entry && nowMs - entry.loadedAtMs < freshMs) return entry.value
      const unknownSinceMs = memory.unknownSince(key) ?? -Infinity
      return nowMs - unknownSinceMs < unknownFreshMs ? null : undefined
    },
    /** Whether the credential was known once, even if it must be queried again: its sender is not guessing. */
    wasKnown: (key: string) => memory.known(key) !== undefined,
    /** Queries the database; concurrent callers of the same key share one query. */
    async get(key: string, fetch: () => Promise<Value | undefined>): Promise<Value | undefined> {
      const started = loading.get(key) ?? load(key, fetch)
      loading.set(key, started)
      outage.probe()
      try {
        const value = await started
        outage.end()
        return value
      } catch (error) {
        if (!isStoreAway(error)) throw error
        outage.begin()
        const entry = memory.known(key)
        if (entry && now().getTime() - entry.loadedAtMs < outageMs) return entry.value
        throw error
      } finally {
        if (loading.get(key) === started) loading.delete(key)
      }
    },
    /** The known values, and when each was loaded. */
    entries: memory.entries,
    /** Restores the entries of an earlier process, unless a change has arrived since the start. */
    restore(entries: Entries<Value>) {
      if (changes === 0) memory.restore(entries)
    },
    forget(id: string) {
      noteChange()
      memory.forget(id)
    },
    forgetAll() {
      noteChange()
      memory.forgetAll()
    },
  }
}

/** Whether callers get cached values without a query, because the last query failed. */
function createOutage(now: Clock) {
  let isAway = false
  let untilMs = 0
  return {
    isPausing: () => isAway && now().getTime() < untilMs,
    begin() {
      isAway = true
      untilMs = now().getTime() + pauseMs
    },
    /** A caller begins to query: the others go on pausing until it has succeeded or failed. */
    probe() {
      if (isAway) untilMs = now().getTime() + probeMs
    },
    end() {
      isAway = false
    },
  }
}

export type LookupCache<Value> = ReturnType<typeof createLookupCache<Value>>
