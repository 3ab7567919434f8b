import { addOne, type EntityCounts } from './entity-counts.ts'
import type { EntityKind } from './entity.ts'

/** A value, normalised, and how it is written. */
type Written = { readonly kind: EntityKind; readonly value: string; readonly spelling: string }

/** The placeholders of one conversation: the same value has the same one, in the request and in its answer. */
export type Placeholders = {
  /** Counts the value as replaced. */
  replace(value: Written): string
  /** How often something was replaced. */
  readonly counts: EntityCounts
  /** The placeholders so far, each with its value as it was written first. */
  readonly spellings: ReadonlyMap<string, string>
  /** Placeholders that agree with these as far as there are any. What is replaced with them changes nothing here. */
  fork(): Placeholders
}

export const createPlaceholders = (): Placeholders => build(new Map(), new Map())

type Numbers = Map<string, string>

/** Placeholders by kind and value. */
function build(known: Numbers, sizes: Map<EntityKind, number>): Placeholders {
  const counts = new Map<EntityKind, number>()
  const spellings = new Map<string, string>()
  return {
    counts,
    spellings,
    replace({ kind, value, spelling }) {
      addOne(counts, kind)
      const key = `${kind} ${keyOf(kind, value)}`
      const placeholder = known.get(key) ?? `[${kind}_${nextNumber(sizes, kind)}]`
      known.set(key, placeholder)
      if (!spellings.has(placeholder)) spellings.set(placeholder, spelling)
      return placeholder
    },
    fork: () => build(new Map(known), new Map(sizes)),
  }
}

function nextNumber(sizes: Map<EntityKind, number>, kind: EntityKind): number {
  const number = (sizes.get(kind) ?? 0) + 1
  sizes.set(kind, number)
  return number
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
