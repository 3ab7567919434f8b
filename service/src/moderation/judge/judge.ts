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

/**
 * Why there is no verdict:
 * - `misconfigured`: the judge refuses this gateway, as with a wrong key or an unknown model
 * - `unavailable`: it cannot be reached or fails, or is not asked for a moment because it has failed too often
 * - `throttled`: it wants fewer calls
 * - `late`: it did not answer in time
 * - `no_verdict`: it has answered, but not with a verdict on every rule
 * - `overloaded`: too many questions wait in this process
 * - `too_long`: no judge can read a text of this length in time
 */
export type JudgeFailureKind =
  | 'misconfigured'
  | 'unavailable'
  | 'throttled'
  | 'late'
  | 'no_verdict'
  | 'overloaded'
  | 'too_long'

/** The judge is away or overloaded, whatever the texts are. */
const outages: ReadonlySet<JudgeFailureKind> = new Set<JudgeFailureKind>([
  'unavailable',
  'throttled',
  'late',
])

type FailureOptions = {
  cause?: unknown
  atLeast?: ReadonlyMap<string, number>
  /** What was sent may have caused the failure, such as a text in many pieces. */
  mayBeByCaller?: boolean
}

/** Thrown if some rule has no verdict. Its message never contains text of the judge, nor of what was judged. */
export class JudgeFailure extends Error {
  readonly kind: JudgeFailureKind
  /**
   * The scores that are known nevertheless, by policy id. The score of a rule is at least this: a rule that matches by it has
   * matched, and one that does not may still match.
   */
  readonly atLeast: ReadonlyMap<string, number>
  readonly mayBeByCaller: boolean

  constructor(kind: JudgeFailureKind, message: string, options: FailureOptions = {}) {
    super(message, { cause: options.cause })
    this.name = 'JudgeFailure'
    this.kind = kind
    this.atLeast = options.atLeast ?? new Map()
    this.mayBeByCaller = options.mayBeByCaller ?? false
  }

  /** Whether no caller can cause this failure by what it sends or by how much. Only then may a call pass without the verdict. */
  get isOutage(): boolean {
    return outages.has(this.kind) && !this.mayBeByCaller
  }

  /** Trying again does not help. */
  get isMisconfigured(): boolean {
    return this.kind === 'misconfigured'
  }
}

/** The failure that decides, of several: a wrong configuration first, then any failure that lets no call pass. */
export function worstOf(failures: readonly unknown[]): unknown {
  const isRefusal = (failure: unknown) => failure instanceof JudgeFailure && failure.isMisconfigured
  const isNoOutage = (failure: unknown) => !(failure instanceof JudgeFailure && failure.isOutage)
  return failures.find(isRefusal) ?? failures.find(isNoOutage) ?? failures[0]
}
