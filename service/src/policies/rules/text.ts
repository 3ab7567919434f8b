import { finish, type Steps } from '#platform/steps/steps.ts'
import type { EntityKind } from '#redaction/entity.ts'

import {
  type VocabularyHits,
  type TextSegment,
  UnreadableText,
  type Vocabulary,
} from './vocabulary.ts'

/**
 * The value of `text`, `system` and the like in expressions: a list of segments, in which only what a rule set
 * looks for can be found. A class of its own, because the methods of the library's strings run patterns in V8.
 */
export class Text {
  readonly #segments: readonly TextSegment[]
  readonly #vocabulary: Vocabulary
  #findings: VocabularyHits | null = null
  #problem: unknown = null

  constructor(segments: readonly TextSegment[], vocabulary: Vocabulary) {
    this.#segments = segments
    this.#vocabulary = vocabulary
  }

  /** Whether it has been read. */
  get isRead(): boolean {
    return this.#findings !== null
  }

  matches(pattern: string): boolean {
    return this.#read().hasPattern(pattern)
  }

  contains(literal: string): boolean {
    return this.#read().hasLiteral(literal)
  }

  /** Whether it matches, or may: a search for the pattern may have failed. */
  mayMatch(pattern: string): boolean {
    return this.#read().mayHavePattern(pattern)
  }

  containsNormalised(literal: string): boolean {
    return this.#read().hasNormalised(literal)
  }

  size(): number {
    return this.#read().size
  }

  /** How often personal data or secrets of a kind occur. */
  count(kind: EntityKind): number {
    return this.#read().countOf(kind)
  }

  /** Reads the segments in steps, after each of which the event loop may go on with something else. */
  *readInSteps(): Steps<void> {
    if (this.#findings || this.#problem !== null) return
    try {
      this.#findings = yield* this.#vocabulary.find(this.#segments)
    } catch (problem) {
      // A search that failed may succeed later: then the call is refused, and no rule is to blame.
      if (!(problem instanceof UnreadableText)) throw problem
      // Only the rules that ask for this text cannot be evaluated. It is not read again, now all at once.
      this.#problem = problem
    }
  }

  /** Most expressions never ask for `system` or `last_message`: a text is read when it is first asked. */
  #read(): VocabularyHits {
    if (this.#problem !== null) throw this.#problem
    this.#findings ??= finish(this.#vocabulary.find(this.#segments))
    return this.#findings
  }
}
