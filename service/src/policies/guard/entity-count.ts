import type { EntityAtom } from '#policies/rules/formula.ts'
import type { EntityKind } from '#redaction/entity.ts'

import type { AtomStarts, Place } from './atom-starts.ts'

type Counted = { readonly places: Place[]; readonly atoms: { number: number; atLeast: number }[] }

/**
 * Counts the personal data and secrets of all channels in the order in which they arrived, and records where the numbers
 * that rules ask for are reached. Those of a channel may be found later than some that arrived after them in another: then
 * a number is reached earlier than was thought, which matters to no rule, because nothing was decided up to there.
 */
export class EntityCount {
  readonly #starts: AtomStarts
  readonly #kinds = new Map<EntityKind, Counted>()

  private constructor(starts: AtomStarts) {
    this.#starts = starts
  }

  /** Null where no rule asks for any. */
  static of(
    atoms: readonly EntityAtom[],
    asked: ReadonlySet<number>,
    starts: AtomStarts,
  ): EntityCount | null {
    if (asked.size === 0) return null
    const count = new EntityCount(starts)
    for (const [number, { entity, atLeast }] of atoms.entries()) {
      if (!asked.has(number)) continue
      const counted = count.#kinds.get(entity) ?? { places: [], atoms: [] }
      counted.atoms.push({ number, atLeast })
      count.#kinds.set(entity, counted)
    }
    return count
  }

  /** `placeOf` is asked only where some rule counts the kind. */
  add(kind: EntityKind, placeOf: () => Place): void {
    const counted = this.#kinds.get(kind)
    if (!counted) return
    const { places, atoms } = counted
    const place = placeOf()
    let index = places.length
    while (index > 0 && (places[index - 1]?.order ?? 0) > place.order) index--
    places.splice(index, 0, place)
    for (const { number, atLeast } of atoms) {
      const reached = places[atLeast - 1]
      if (reached && atLeast > index) this.#starts.record('entity', number, reached)
    }
  }
}
