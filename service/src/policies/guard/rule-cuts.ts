import type { AnswerEnding } from '#policies/rules/answer-rules.ts'

import type { AtomStarts, Place } from './atom-starts.ts'
import type { EndOutcome } from './guard-end.ts'

type Cut<Ending> = { readonly ending: Ending; readonly place: Place; readonly isError: boolean }

/** Where the enforcing rules cut an answer, as far as that is known. */
export class RuleCuts<Ending extends AnswerEnding> {
  readonly #rules: readonly Ending[]
  readonly #starts: AtomStarts
  /** Rules that needed the whole answer and match it. */
  readonly #endMatches = new Map<number, EndOutcome>()

  constructor(rules: readonly Ending[], starts: AtomStarts) {
    this.#rules = rules
    this.#starts = starts
  }

  noteAtEnd(outcomes: readonly EndOutcome[]) {
    for (const outcome of outcomes)
      if (outcome.isMatch) this.#endMatches.set(outcome.index, outcome)
  }

  /** The smallest cut before this place, that of the first rule of several. `origin` is where the answer begins. */
  findFirst(before: number, origin: Place): Cut<Ending> | null {
    let first: { rule: Ending; place: Place } | null = null
    for (const rule of this.#rules) {
      const place = this.#cutOf(rule, origin)
      if (!place || place.order >= before) continue
      if (!first || place.order < first.place.order) first = { rule, place }
    }
    if (!first) return null
    const { rule, place } = first
    const { isError = false } = (rule.formula ? rule : this.#endMatchOf(rule)) ?? {}
    return { ending: rule, place, isError }
  }

  #cutOf(rule: Ending, origin: Place): Place | null {
    if (rule.formula) return this.#starts.cutOf(rule.formula, origin)
    return this.#endMatchOf(rule) ? origin : null
  }

  #endMatchOf({ index }: Ending): EndOutcome | undefined {
    return index === undefined ? undefined : this.#endMatches.get(index)
  }
}
