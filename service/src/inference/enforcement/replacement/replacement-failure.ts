/** Why there is no replacement, also as a label of metrics. */
export type ReplacementOutcome =
  /** No rewriter is configured, or the catalogue does not have it. */
  | 'unconfigured'
  /** The organization has had too many texts replaced in this minute. */
  | 'over_limit'
  /** Too many other texts wait to be replaced. */
  | 'overloaded'
  | 'late'
  /** Empty, cut off, too long, or a refusal. */
  | 'unusable'
  /** The check of the replacement has found something, so it may not leave. */
  | 'blocked'

export class ReplacementFailure extends Error {
  override readonly name = 'ReplacementFailure'
  readonly outcome: ReplacementOutcome
  constructor(outcome: ReplacementOutcome, message: string, options?: ErrorOptions) {
    super(message, options)
    this.outcome = outcome
  }
}
