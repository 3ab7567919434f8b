import type { Clock } from '#platform/clock.ts'

type Entry<Value> = { value: Value; loadedAtMs: number }
export type Entries<Value> = readonly (readonly [key: string, entry: Entry<Value>])[]

type Options<Value> = {
  now: Clock
  dependsOn: (value: Value) => readonly string[]
  entriesMax: number
}

/** Bounded memory of what credentials stand for, and of which ids each answer was made from. */
export function createCredentialMemory<Value>({ now, dependsOn, entriesMax }: Options<Value>) {
  const known = new Map<string, Entry<Value>>()
  // Apart from the known, so that a flood of guesses evicts nobody.
  const unknown = new Map<string, number>()
  const dependents = new Map<string, Set<string>>()

  function remove(key: string) {
    const entry = known.get(key)
    if (!entry) return
    known.delete(key)
    for (const id of dependsOn(entry.value)) {
      const keys = dependents.get(id)
      keys?.delete(key)
      if (keys?.size === 0) dependents.delete(id)
    }
  }

  function dropOldest(entries: Map<string, unknown>, drop: (key: string) => void) {
    const [oldest] = entries.keys()
    if (entries.size > entriesMax && oldest !== undefined) drop(oldest)
  }

  function remember(key: string, value: Value, loadedAtMs = now().getTime()) {
    remove(key)
    unknown.delete(key)
    known.set(key, { value, loadedAtMs })
    for (const id of dependsOn(value)) {
      dependents.set(id, (dependents.get(id) ?? new Set()).add(key))
    }
    dropOldest(known, remove)
  }

  return {
    known: (key: string) => known.get(key),
    unknownSince: (key: string) => unknown.get(key),
    entries: (): Entries<Value> => [...known],
    remember,
    recall(entries: Entries<Value>) {
      for (const [key, { value, loadedAtMs }] of entries) {
        if (!known.has(key)) remember(key, value, loadedAtMs)
      }
    },
    rememberUnknown(key: string) {
      remove(key)
      unknown.delete(key)
      unknown.set(key, now().getTime())
      dropOldest(unknown, (oldest) => unknown.delete(oldest))
    },
    forget(id: string) {
      for (const key of dependents.get(id) ?? []) remove(key)
    },
    forgetAll() {
      for (const entries of [known, unknown, dependents]) entries.clear()
    },
  }
}
