/** Why there is no replacement, also as a label of metrics. */
export type ReplacementOutcome =
  /** No rewriter is named, or none of the catalogue. */
  | 'unconfigured'
  /** The organization has had too many texts replaced in this minute. */
  | 'over_limit'
  /** Too many others wait. */
  | 'overloaded'
  | 'late'
  /** Empty, cut off, too long, or a refusal. */
  | 'unusable'
  /** It was judged, and may not leave. */
  | 'blocked'

export class ReplacementFailure extends Error {
  override readonly name = 'ReplacementFailure'
  readonly outcome: ReplacementOutcome
  constructor(outcome: ReplacementOutcome, message: string, options?: ErrorOptions) {
    super(message, options)
    this.outcome = outcome
  }
}
