import type { CutWindow } from '#text/windows/window-cutter.ts'
import type { WindowGrid } from '#text/windows/window-grid.ts'

import type { Category, CategoryScores } from './categories.ts'

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

/** What went wrong, also as a label of metrics. */
export type ScorerProblem =
  /** It refuses this gateway: a wrong key, model or address. */
  | 'misconfigured'
  /** No connection, or one that broke. */
  | 'unreachable'
  | 'timeout'
  /** 429. */
  | 'busy'
  /** 5xx, or a redirect. */
  | 'error'
  /** It does not accept this request, as with 400: another text may succeed. */
  | 'rejected'
  /** An answer that is no answer, is incomplete or contradicts itself. */
  | 'malformed'
  /** It was not asked, because it failed too often just now. */
  | 'paused'
  /** It was not asked, because this process has too many calls to it open. */
  | 'overloaded'
  /** It was not asked, because the texts are too long for it: trying again does not help. */
  | 'too_long'

/** The scorer is away or overloaded, whatever the texts are. */
const outages: ReadonlySet<ScorerProblem> = new Set<ScorerProblem>([
  'unreachable',
  'timeout',
  'busy',
  'error',
])

type FailureOptions = {
  cause?: unknown
  /**
   * What was sent may have caused the failure, such as an image that the scorer has to load from a slow server, or very many
   * texts.
   */
  mayBeByCaller?: boolean
}

/** Why there are no scores. */
export class ScorerFailure extends Error {
  readonly problem: ScorerProblem
  readonly mayBeByCaller: boolean

  constructor(problem: ScorerProblem, message: string, options: FailureOptions = {}) {
    const { mayBeByCaller = false, ...causes } = options
    super(message, causes)
    this.name = 'ScorerFailure'
    this.problem = problem
    this.mayBeByCaller = mayBeByCaller
  }

  /** The same failure, marked as possibly caused by what was sent. */
  asByCaller(): ScorerFailure {
    const { problem, message, cause } = this
    return new ScorerFailure(problem, message, { cause, mayBeByCaller: true })
  }

  /**
   * Whether no caller can cause this failure by the texts it sends. A scorer that is paused because of such a failure counts as
   * an outage, too.
   */
  get isOutage(): boolean {
    const { problem, cause, mayBeByCaller } = this
    if (problem === 'paused') return cause instanceof ScorerFailure && cause.isOutage
    return outages.has(problem) && !mayBeByCaller
  }

  /** The scorer does not take these texts, whenever it is asked. */
  get isByContent(): boolean {
    return this.problem === 'too_long' || this.problem === 'rejected'
  }

  /**
   * Whether the scorer refuses this gateway, as with a wrong key or an unknown model. That is no outage, and trying again does
   * not help. It stays true while the scorer is paused for this reason.
   */
  get isMisconfigured(): boolean {
    const { problem, cause } = this
    return problem === 'misconfigured' || (cause instanceof ScorerFailure && cause.isMisconfigured)
  }
}
