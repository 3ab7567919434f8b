import type { Clock } from '#platform/clock.ts'
import { isStoreAway } from '#platform/to-api-error.ts'

import { createCredentialMemory, type Entries } from './credential-memory.ts'

type Options<Value> = {
  now: Clock
  /** How long known values may be served while the store is away. */
  outageMs: number
  /** The ids of everything the value was made from; a change of any of them makes it void. */
  dependsOn: (value: Value) => readonly string[]
  entriesMax?: number
}

const knownFreshMs = 60_000
const unknownFreshMs = 2000
/**
 * A store that was away is not asked again by everybody, since that would cost each a timeout: after a
 * pause one caller asks, while the others are served what is known. Asking may take as long as this.
 */
const awayMs = 1000
const probeMs = 8000

/**
 * Remembers who a credential belongs to. Known values live a minute and fall at once when something
 * they depend on changes; unknown ones live two seconds. While the store is away, known values serve
 * on until `outageMs`, and a credential nobody has seen cannot be judged.
 */
export function createLookupCache<Value>(options: Options<Value>) {
  const { now, outageMs, dependsOn, entriesMax = 100_000 } = options
  const memory = createCredentialMemory({ now, dependsOn, entriesMax })
  const loading = new Map<string, Promise<Value | undefined>>()
  let changes = 0
  const outage = createOutage(now)

  async function load(key: string, fetch: () => Promise<Value | undefined>) {
    const changesBefore = changes
    const value = await fetch()
    // What was read while a change arrived may be older than the change: use it, do not keep it.
    if (changes !== changesBefore) return value
    if (value === undefined) memory.rememberUnknown(key)
    else memory.remember(key, value)
    return value
  }

  /** Whoever asks from now on must not be told what was read before the change. */
  const noteChange = () => {
    changes++
    loading.clear()
  }

  return {
    /** The value without asking the store: undefined when it must be asked, null when it is unknown. */
    peek(key: string): Value | null | undefined {
      const nowMs = now().getTime()
      const entry = memory.known(key)
      const freshMs = outage.isNow() ? Math.max(outageMs, knownFreshMs) : knownFreshMs
      if (entry && nowMs - entry.loadedAtMs < freshMs) return entry.value
      const unknownSinceMs = memory.unknownSince(key) ?? -Infinity
      return nowMs - unknownSinceMs < unknownFreshMs ? null : undefined
    },
    /** Was it known a while ago? Then whoever sent it is not guessing, even if it must be asked again. */
    wasKnown: (key: string) => memory.known(key) !== undefined,
    /** Asks the store, once for all who ask at the same time. */
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
    /** What is known, and since when. */
    entries: memory.entries,
    /** Takes back what was known before a restart, unless the store has been heard since. */
    recall(entries: Entries<Value>) {
      if (changes === 0) memory.recall(entries)
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
/** Whether the store is taken to be away, so that callers are served what is known without asking it. */
function createOutage(now: Clock) {
  let isAway = false
  let untilMs = 0
  return {
    isNow: () => isAway && now().getTime() < untilMs,
    begin() {
      isAway = true
      untilMs = now().getTime() + awayMs
    },
    probe() {
      if (isAway) untilMs = now().getTime() + probeMs
    },
    end() {
      isAway = false
    },
  }
}

export type LookupCache<Value> = ReturnType<typeof createLookupCache<Value>>
