import type { Piece } from '#formats/answer.ts'
import type { Questions } from '#moderation/scorer.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'

/** The actions of a configuration that put other words in the place of what is blocked. */
export type ReplacingAction = 'rewrite' | 'summary'

/** What was blocked, and why. */
export type Blocked = {
  readonly action: ReplacingAction
  readonly direction: 'request' | 'response'
  /** The last message of a request, or an answer as far as the model has written it. */
  readonly text: string
  /** The categories that were found. */
  readonly categories: readonly string[]
  /** The terms of the denylist that were found. */
  readonly terms: readonly string[]
}

/** What is said instead. It has been judged already. */
export type Replacement = {
  readonly text: string
  /** The id of the model that wrote it. */
  readonly model: string
  /** What that model has read and written. */
  readonly tokens: number
}

/** The call for which something is replaced. */
export type ReplacedCall = {
  readonly organizationId: string
  readonly cancellation: Cancellation
  /** Throws if too many texts of the organization were replaced in this minute. */
  readonly questions: Pick<Questions, 'begin'>
  /** Judges an answer as that of the model would be judged: throws where it may not leave. */
  judge(pieces: AsyncIterable<Piece>): AsyncIterable<Piece>
}

/** Has a replacement written and judged. Null where that fails for any reason: then the call is refused. Never rejects. */
export type Replace = (blocked: Blocked, call: ReplacedCall) => Promise<Replacement | null>
