import { type FailureKind, type FailureOptions, ModelFailure } from '#moderation/model-failure.ts'
import type { Questions } from '#moderation/scorer.ts'

/** A rule in plain language, as its policy's version says it. */
export type JudgedRule = {
  readonly policyId: string
  readonly version: number
  readonly text: string
}

/** The text that is judged, and what was said before it, of which the judge sees the last 2,000 characters. */
export type JudgedContent = {
  readonly direction: 'request' | 'response'
  readonly context: string
  readonly text: string
}

/** The organization for which a judge is asked. Each organization waits in a line of its own. */
export type JudgeCall = {
  readonly organizationId: string
  readonly signal: AbortSignal
  /** Called before each question to the model, which is not asked if this throws. Known verdicts need no question. */
  readonly beforeAsking?: () => Promise<void>
  /** Counts the questions, if they are counted at all. */
  readonly questions?: Questions | undefined
  /** Only known verdicts count. If the judge would have to be asked, `NotAsked` is thrown. */
  readonly isKnownOnly?: boolean | undefined
}

/** Scores how much a text breaks rules in plain language. It decides nothing. */
export type Judge = {
  /** Which model judges, in which state; recorded with each decision. */
  readonly id: string
  readonly calibrationVersion: string
  /** Basis points by policy id, for all rules; throws a JudgeFailure, or the reason of the signal. */
  judge(
    rules: readonly JudgedRule[],
    content: JudgedContent,
    call: JudgeCall,
  ): Promise<ReadonlyMap<string, number>>
  /** Whether the judge is not asked at the moment because it has failed too often. */
  isPausing(): boolean
}

export type JudgeFailureKind = Extract<
  FailureKind,
  'misconfigured' | 'unavailable' | 'throttled' | 'late' | 'no_verdict' | 'overloaded' | 'too_long'
>

/** Thrown if some rule has no verdict. */
export class JudgeFailure extends ModelFailure<JudgeFailureKind> {
  override readonly name = 'JudgeFailure'
  /**
   * The scores that are known nevertheless, by policy id. The score of a rule is at least this: a rule that matches by it has
   * matched, and one that does not may still match.
   */
  readonly atLeast: ReadonlyMap<string, number>

  constructor(
    kind: JudgeFailureKind,
    message: string,
    {
      atLeast = new Map(),
      ...options
    }: FailureOptions & Partial<Pick<JudgeFailure, 'atLeast'>> = {},
  ) {
    super(kind, message, options)
    this.atLeast = atLeast
  }
}

/** The failure that decides, of several: a wrong configuration first, then any failure that lets no call pass. */
export function worstOf(failures: readonly unknown[]): unknown {
  const isRefusal = (failure: unknown) => failure instanceof JudgeFailure && failure.isMisconfigured
  const isNoOutage = (failure: unknown) => !(failure instanceof JudgeFailure && failure.isOutage)
  return failures.find(isRefusal) ?? failures.find(isNoOutage) ?? failures[0]
}
