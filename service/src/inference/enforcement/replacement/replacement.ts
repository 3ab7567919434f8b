import type { Piece } from '#formats/answer.ts'
import type { Questions } from '#moderation/scorer.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'

/** The actions of a configuration that replace what is blocked. */
export type ReplacingAction = 'rewrite' | 'summary'

/** What was blocked, and why. */
export type Blocked = {
  readonly action: ReplacingAction
  readonly direction: 'request' | 'response'
  /** The last message of a request, or what the model has written of an answer so far. */
  readonly text: string
  /** The categories that were found. */
  readonly categories: readonly string[]
  /** The terms of the denylist that were found. */
  readonly terms: readonly string[]
}

/** The replacement text. It has already been checked. */
export type Replacement = {
  readonly text: string
  /** The id of the model that wrote it. */
  readonly model: string
  /** The tokens that the model has read and written. */
  readonly tokens: number
}

/** The call for which something is replaced. */
export type ReplacedCall = {
  readonly organizationId: string
  readonly cancellation: Cancellation
  /** Throws if too many texts of the organization have been replaced in this minute. */
  readonly questions: Pick<Questions, 'begin'>
  /** Checks a text as the model's answer would be checked; throws if it may not leave. */
  judge(pieces: AsyncIterable<Piece>): AsyncIterable<Piece>
}

/** Has a replacement written and checked. Returns null if that fails for any reason; then the call is refused. Never rejects. */
export type Replace = (blocked: Blocked, call: ReplacedCall) => Promise<Replacement | null>

/** Why there is no replacement, also as a label of metrics. */
type ReplacementOutcome =
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
