import { Normaliser } from '#text/normalise.ts'
import type { Steps } from '#text/steps.ts'

import { EntityScanner } from './entity-scanner.ts'
import type { EntityKind } from './entity.ts'

/** How many entities of each kind there are. */
export type EntityCounts = ReadonlyMap<EntityKind, number>

export function addOne(counts: Map<EntityKind, number>, kind: EntityKind) {
  counts.set(kind, (counts.get(kind) ?? 0) + 1)
}

/** Counts the entities of a text that may come in pieces, and leaves it as it is. */
export class EntityCounter {
  readonly #normaliser = new Normaliser()
  readonly #scanner: EntityScanner

  constructor(counts: Map<EntityKind, number>) {
    this.#scanner = new EntityScanner({ begin: (kind) => addOne(counts, kind) })
  }

  push(piece: string): void {
    this.#scanner.read(this.#normaliser.push(piece))
    this.#normaliser.forget(this.#normaliser.length)
  }

  /** The text is over. */
  end(): void {
    this.#scanner.read(this.#normaliser.end())
    this.#scanner.end()
  }
}

export function addCounts(counts: Map<EntityKind, number>, more: EntityCounts) {
  for (const [kind, count] of more) counts.set(kind, (counts.get(kind) ?? 0) + count)
}

/** How much of a text is read in one step. */
const readAtOnce = 4096

/** How many entities a complete text has. */
export function* countEntities(text: string): Steps<EntityCounts> {
  const counts = new Map<EntityKind, number>()
  const counter = new EntityCounter(counts)
  for (let at = 0; at < text.length; at += readAtOnce) {
    counter.push(text.slice(at, at + readAtOnce))
    yield
  }
  counter.end()
  return counts
}
