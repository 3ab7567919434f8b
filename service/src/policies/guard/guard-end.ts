import type { AnswerEnding } from '#policies/rules/answer-rules.ts'

/** Something ended the answer. `cut` is an offset in the channel's original text: nothing from there on may leave. */
export type GuardBlock<Ending = AnswerEnding> = {
  readonly kind: 'block'
  readonly ending: Ending
  /** The rule could not be evaluated, and an enforcing rule that cannot be evaluated blocks. */
  readonly isError: boolean
  readonly channel: string
  readonly cut: number
}
/**
 * `beyond_limits`: the answer is such that it cannot be judged within the guard's limits. `unavailable`: it could not be
 * judged for another reason; a scorer or a thread failed or was too slow, or the upstream contradicts itself.
 */
export type GuardEnd<Ending = AnswerEnding> =
  | GuardBlock<Ending>
  | { readonly kind: 'beyond_limits' | 'unavailable' }

/** Why an answer is beyond the limits within which answers are judged or kept. A caller can ask for such an answer. */
export class BeyondLimits extends Error {
  override readonly name = 'BeyondLimits'
}

/** What rules without a formula say of a complete answer. */
export type EndOutcome = {
  readonly index: number
  readonly isMatch: boolean
  readonly isError: boolean
}
