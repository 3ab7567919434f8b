import type { Category, CategoryScores } from '#moderation/categories.ts'
import type { Segment } from '#moderation/scorer.ts'

/** A request to a scorer. The path starts at the root of its server. */
export type ScorerCall = { readonly path: string; readonly body: object }

/**
 * How one kind of model is asked for scores. Pure: `toCalls` says what to send, and `readReplies` what the replies mean. The
 * scorer that uses the adapter sends the calls, and cuts texts and lists of segments to sizes that the model accepts.
 */
export type Adapter = {
  readonly covers: ReadonlySet<Category>
  readonly readsImages: boolean
  /** How many texts go into one group. A segment with an image is always alone. */
  readonly groupMax: number
  /** The calls that score one group. */
  toCalls(group: readonly Segment[], model: string): readonly ScorerCall[]
  /** The replies to these calls, in the same order; one result per segment of the group. Throws a ScorerFailure. */
  readReplies(replies: readonly unknown[], group: readonly Segment[]): readonly CategoryScores[]
}
