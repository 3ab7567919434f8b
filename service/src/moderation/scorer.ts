import type { CutWindow } from '#text/windows/window-cutter.ts'
import type { WindowGrid } from '#text/windows/window-grid.ts'

import type { Category, CategoryScores } from './categories.ts'
import { type FailureKind, ModelFailure } from './model-failure.ts'

/** A text to be scored, and who said it. An image is a `data:` or `https:` address. */
export type Segment = {
  readonly role: 'user' | 'assistant'
  readonly text: string
  readonly imageUrl?: string
  /** Of an earlier answer: the windows in which it was scored when it was given. */
  readonly windows?: (grid: WindowGrid) => Iterable<readonly CutWindow[]>
}

/** Counts the questions that one organization causes to models outside of this process. */
export type Questions = {
  /** Called before questions are sent; if it throws, none is sent. */
  begin(questions: number): Promise<void>
  /** Counts questions that must be asked in any case, such as those that follow from an answer. */
  add(questions: number): void
}

/** Counts without a limit, because an admitted call is not ended for the questions that its answer causes. */
export const countedOnly = (questions: Questions): Questions => ({
  ...questions,
  begin: async (number) => questions.add(number),
})

/** Thrown where a scorer, the judge or a guardrail would have to be asked for a call that may not ask them. */
export class NotAsked extends Error {
  override readonly name = 'NotAsked'
  readonly whom: 'scorer' | 'judge' | 'guardrail'
  constructor(whom: NotAsked['whom']) {
    super(`The ${whom} was not asked.`)
    this.whom = whom
  }
}

export type ScoringCall = {
  readonly signal: AbortSignal
  /** Organizations take turns, so that one with many texts does not delay the others. */
  readonly organizationId: string
  /** Counts the questions, if they are counted at all. */
  readonly questions?: Questions | undefined
  /** Only known scores count. If a remote scorer would have to be asked, `NotAsked` is thrown. */
  readonly isKnownOnly?: boolean | undefined
  /** Called with each result as soon as it is known, also before a failure. */
  readonly onScored?: (index: number, scores: CategoryScores) => void
}

/** Scores how much a text belongs to categories. It decides nothing. */
export type Scorer = {
  readonly name: string
  readonly covers: ReadonlySet<Category>
  /** Without it only the texts of segments are scored. */
  readonly readsImages?: boolean
  /** Whether it asks a model outside of this process. */
  readonly asksOthers?: boolean
  /** One result per segment, in their order; throws a ScorerFailure. */
  score(segments: readonly Segment[], call: ScoringCall): Promise<readonly CategoryScores[]>
}

export type ScorerProblem = Exclude<
  FailureKind,
  'unavailable' | 'throttled' | 'late' | 'no_verdict'
>

/** Why there are no scores. */
export class ScorerFailure extends ModelFailure<ScorerProblem> {
  override readonly name = 'ScorerFailure'

  /** The same failure, marked as possibly caused by what was sent. */
  asByCaller(): ScorerFailure {
    const { kind, message, cause } = this
    return new ScorerFailure(kind, message, { cause, mayBeByCaller: true })
  }

  /** The scorer does not take these texts, whenever it is asked. */
  get isByContent(): boolean {
    return this.kind === 'too_long' || this.kind === 'rejected'
  }
}
