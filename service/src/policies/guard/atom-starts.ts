import type { AnswerEnding, AnswerFormula } from '#policies/rules/answer-rules.ts'

/** A place in an answer: an offset in the original text of a channel. `order` compares places of all channels. */
export type Place = { readonly order: number; readonly channel: string; readonly offset: number }

/** All terms together are one atom. */
export const termAtom = 0

type AtomKind = 'pattern' | 'literal' | 'term' | 'size' | 'score' | 'entity'
export type AskedAtoms = Readonly<Record<AtomKind, ReadonlySet<number>>>

/** The atoms that rules ask for, by their numbers; a size is its own number. */
export function readAskedAtoms(rules: readonly AnswerEnding[]): AskedAtoms {
  const asked = {
    pattern: new Set<number>(),
    literal: new Set<number>(),
    term: new Set<number>(),
    size: new Set<number>(),
    score: new Set<number>(),
    entity: new Set<number>(),
  }
  const read = (formula: AnswerFormula) => {
    if ('parts' in formula) return formula.parts.forEach(read)
    if (formula.kind === 'constant') return
    const number = numberOf(formula)
    if (formula.kind === 'size' && isAlwaysReached(number)) return
    asked[formula.kind].add(number)
  }
  for (const { formula } of rules) if (formula) read(formula)
  return asked
}

/** The places where atoms first become true, in whatever order they are found. */
export class AtomStarts {
  readonly #starts: Record<AtomKind, Map<number, Place>> = {
    pattern: new Map(),
    literal: new Map(),
    term: new Map(),
    size: new Map(),
    score: new Map(),
    entity: new Map(),
  }

  /** The first start that no rule was asked about. It is 0 at first, where constants are true from the beginning. */
  #firstNew = 0

  record(kind: AtomKind, atom: number, place: Place) {
    const known = this.#starts[kind].get(atom)
    if (known && known.order <= place.order) return
    this.#starts[kind].set(atom, place)
    this.#firstNew = Math.min(this.#firstNew, place.order)
  }

  /** Whether something became true before `order` that no rule was asked about. */
  hasNewsBefore(order: number): boolean {
    return this.#firstNew < order
  }

  /** The rules have been asked about everything before `order`. */
  settle(order: number) {
    this.#firstNew = Infinity
    for (const places of Object.values(this.#starts)) {
      for (const place of places.values()) {
        if (place.order >= order) this.#firstNew = Math.min(this.#firstNew, place.order)
      }
    }
  }

  /** Where the last match that the formula needs begins; null while it is not true. `origin` is where an answer begins. */
  cutOf(formula: AnswerFormula, origin: Place): Place | null {
    switch (formula.kind) {
      case 'constant':
        return formula.value ? origin : null
      case 'and':
        return this.#latest(formula.parts, origin)
      case 'or':
        return this.#earliest(formula.parts, origin)
      case 'size':
        if (isAlwaysReached(formula.atLeast)) return origin
        return this.#starts.size.get(formula.atLeast) ?? null
      default:
        return this.#starts[formula.kind].get(numberOf(formula)) ?? null
    }
  }

  #latest(parts: readonly AnswerFormula[], origin: Place): Place | null {
    let latest = origin
    for (const part of parts) {
      const cut = this.cutOf(part, origin)
      if (!cut) return null
      if (cut.order > latest.order) latest = cut
    }
    return latest
  }

  #earliest(parts: readonly AnswerFormula[], origin: Place): Place | null {
    let earliest: Place | null = null
    for (const part of parts) {
      const cut = this.cutOf(part, origin)
      if (cut && (!earliest || cut.order < earliest.order)) earliest = cut
    }
    return earliest
  }
}

/** A text of no characters has this size already. */
function isAlwaysReached(size: number): boolean {
  return size <= 0
}

function numberOf(atom: Exclude<AnswerFormula, { kind: 'and' | 'or' | 'constant' }>): number {
  switch (atom.kind) {
    case 'pattern':
      return atom.pattern
    case 'literal':
      return atom.literal
    case 'term':
      return termAtom
    case 'size':
      return atom.atLeast
    case 'score':
    case 'entity':
      return atom.atom
  }
}
