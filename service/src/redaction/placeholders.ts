import { addOne, type EntityCounts } from './entity-counts.ts'
import type { EntityKind } from './entity.ts'

/** The placeholders of one conversation: the same value has the same one, in the request and in its answer. */
export type Placeholders = {
  /** Counts the value as replaced. It is normalised. */
  replace(kind: EntityKind, value: string): string
  /** How often something was replaced. */
  readonly counts: EntityCounts
}

export function createPlaceholders(): Placeholders {
  const numbers = new Map<EntityKind, Map<string, number>>()
  const counts = new Map<EntityKind, number>()
  return {
    counts,
    replace(kind, value) {
      const known = numbers.get(kind) ?? new Map<string, number>()
      numbers.set(kind, known)
      const key = keyOf(kind, value)
      const number = known.get(key) ?? known.size + 1
      known.set(key, number)
      addOne(counts, kind)
      return `[${kind}_${number}]`
    },
  }
}

/** A number is the same however its digits are grouped, an address however it is capitalised. */
function keyOf(kind: EntityKind, value: string): string {
  switch (kind) {
    case 'SECRET':
      return value
    case 'EMAIL':
    case 'IP':
      return value.toLowerCase()
    default:
      return value.replaceAll(/[^0-9a-z]/gi, '').toUpperCase()
  }
}
