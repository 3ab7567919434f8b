import type { Steps } from '#platform/steps/steps.ts'

import type { EntityKind } from './entity.ts'
import { pushInSteps, ValueFinder } from './value-finder.ts'

/** How many entities of each kind there are. */
export type EntityCounts = ReadonlyMap<EntityKind, number>

export function addOne(counts: Map<EntityKind, number>, kind: EntityKind) {
  counts.set(kind, (counts.get(kind) ?? 0) + 1)
}

/** Counts the entities of a text that may come in pieces, and leaves it as it is. */
export function createEntityCounter(counts: Map<EntityKind, number>): ValueFinder {
  return new ValueFinder({ text: () => undefined, value: ({ kind }) => addOne(counts, kind) })
}

export function addCounts(counts: Map<EntityKind, number>, more: EntityCounts) {
  for (const [kind, count] of more) counts.set(kind, (counts.get(kind) ?? 0) + count)
}

/** How many entities a complete text has. */
export function* countEntities(text: string): Steps<EntityCounts> {
  const counts = new Map<EntityKind, number>()
  const counter = createEntityCounter(counts)
  yield* pushInSteps(counter, text)
  counter.end()
  return counts
}
