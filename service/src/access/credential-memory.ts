import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'

type Entry<Value> = { value: Value; loadedAtMs: number }
export type Entries<Value> = readonly (readonly [key: string, entry: Entry<Value>])[]

type Options<Value> = {
  now: Clock
  /** The ids of the objects a value was read from. */
  dependsOn: (value: Value) => readonly string[]
  entriesMax: number
}

/** The bounded store of a lookup cache: known values, unknown credentials, and an index by object id. */
export function createCredentialMemory<Value>({ now, dependsOn, entriesMax }: Options<Value>) {
  const known = new BoundedMap<string, Entry<Value>>(entriesMax, removeFromIndex)
  // A map of its own, so that a flood of guesses evicts no known credential.
  const unknown = new BoundedMap<string, number>(entriesMax)
  const dependents = new Map<string, Set<string>>()

  function removeFromIndex(key: string, { value }: Entry<Value>) {
    for (const id of dependsOn(value)) {
      const keys = dependents.get(id)
      keys?.delete(key)
      if (keys?.size === 0) dependents.delete(id)
    }
  }

  function remove(key: string) {
    const entry = known.get(key)
    if (!entry) return
    known.delete(key)
    removeFromIndex(key, entry)
  }

  function remember(key: string, value: Value, loadedAtMs = now().getTime()) {
    remove(key)
    unknown.delete(key)
    for (const id of dependsOn(value)) {
      dependents.set(id, (dependents.get(id) ?? new Set()).add(key))
    }
    known.set(key, { value, loadedAtMs })
  }

  return {
    known: (key: string) => known.get(key),
    unknownSince: (key: string) => unknown.get(key),
    entries: (): Entries<Value> => [...known],
    remember,
    restore(entries: Entries<Value>) {
      for (const [key, { value, loadedAtMs }] of entries) {
        // The clock of the process that wrote them may have been ahead of ours.
        if (!known.has(key)) remember(key, value, Math.min(loadedAtMs, now().getTime()))
      }
    },
    rememberUnknown(key: string) {
      remove(key)
      unknown.set(key, now().getTime())
    },
    forget(id: string) {
      for (const key of dependents.get(id) ?? []) remove(key)
    },
    forgetAll() {
      for (const entries of [known, unknown, dependents]) entries.clear()
    },
  }
}
