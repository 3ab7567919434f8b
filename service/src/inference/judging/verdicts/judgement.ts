import type { Features, FoundIn, MatchReport, Refuser } from '#audit/policy-report.ts'
import type { Piece } from '#formats/answer.ts'
import type { ConfiguredCall } from '#inference/gateway/configured-call.ts'
import type { InferenceCall } from '#inference/inference-call.ts'
import type { ModelRequest } from '#inference/model-request.ts'
import type { RedactionCounts } from '#inference/redacting/call-redaction.ts'
import type { Blocked, Replacement } from '#inference/replacing/replacement.ts'
import type { Category } from '#moderation/categories.ts'
import type { JudgedContent, JudgedRule } from '#moderation/judge.ts'
import type { ApiError } from '#platform/api-error.ts'

/** A call as far as its policies may know it: one to a model, or one that counts tokens. */
export type JudgedCall = Pick<
  InferenceCall,
  | 'requestId'
  | 'principal'
  | 'policies'
  | 'policySubject'
  | 'target'
  | 'format'
  | 'cancellation'
  | 'addHeaders'
> &
  Partial<Pick<InferenceCall, 'counted' | 'onDecided'>>

/** A request as far as its policies may know it. The estimate of a request that is only counted is 0. */
export type JudgedRequest = Pick<
  ModelRequest,
  'body' | 'turn' | 'model' | 'isStreamed' | 'hasUnseenInput'
> & {
  estimate: Pick<ModelRequest['estimate'], 'tokens'>
}

/** Texts that the judge is still to be asked about, when the call is over, because of rules that only monitor. */
export type WatchedTexts = {
  readonly direction: 'request' | 'response'
  readonly rules: readonly (JudgedRule & { readonly threshold: number })[]
  /** How many characters are kept until then. */
  readonly length: number
  /** Takes time for a long text, so that no caller may wait for it. */
  contents(): readonly JudgedContent[]
}

/** What was found out about a call, for its event. It grows while the answer is judged. */
export type Findings = {
  readonly matches: MatchReport[]
  /** Where something was found. */
  readonly foundIn: FoundIn[]
  /** Ids of policies that could not be evaluated and let the call pass. */
  readonly unevaluated: string[]
  readonly watched: WatchedTexts[]
  /** Moderation categories because of which something was blocked. */
  readonly triggered: Category[]
  /** A scorer failed, and the call went on without it. */
  isDegraded: boolean
  /** The judge failed, and the call went on without its verdict on enforcing rules. */
  isJudgeDegraded: boolean
  /** Who would have been asked about a call, and was not about a count of tokens. */
  readonly unjudged: Set<'scorer' | 'judge'>
  /** There are parts that nothing has scored, in the request or in the answer: images, files, sound, encrypted data. */
  hasUnscoredParts: boolean
  /** What was redacted; null where nothing is to be. */
  redacted: RedactionCounts | null
  /** What replays need; null where no policy applies. */
  features: Features | null
  /** What decided, if anything was blocked. Whoever throws the error of a block sets it before. */
  blockedBy: Refuser | null
  /** The configuration of the policy gateway, and what it has found; null where there is none. */
  configured: ConfiguredCall | null
  /** What other words are wanted for. Whoever throws the error of such a block sets it before; null: the call is refused. */
  replaceable: Blocked | null
  /** What was said instead of what was blocked. */
  replacement: Pick<Replacement, 'model' | 'tokens'> | null
}

export const createFindings = (): Findings => ({
  matches: [],
  foundIn: [],
  unevaluated: [],
  watched: [],
  blockedBy: null,
  configured: null,
  replaceable: null,
  replacement: null,
  triggered: [],
  isDegraded: false,
  isJudgeDegraded: false,
  unjudged: new Set(),
  hasUnscoredParts: false,
  redacted: null,
  features: null,
})

/** What was decided about a request, and what guards its answer. */
export type Judgement<Request extends JudgedRequest = ModelRequest> = Findings & {
  /** The request that may be sent: another one where something was redacted. */
  request: Request
  /** Why it may not be sent. The error is here and not thrown, so that the event can tell what matched. */
  refusal: ApiError | null
  /** Waits for verdicts that cost something, of remote scorers and the judge; throws where the request may not be sent. */
  settle(): Promise<void>
  /** Holds back pieces that are not cleared yet, and throws where the answer may not go on. */
  guard(pieces: AsyncIterable<Piece>): AsyncIterable<Piece>
  /** What is said instead of a request that ended with this error; null, or absent: nothing, and it is refused. */
  replace?(error: unknown): Promise<Replacement | null>
}

/**
 * Judges a request by the exact rules that are in force, and by the scorer in this process. It throws only where that cannot
 * be done; what was found out until then is in `findings`, which become the judgement.
 */
export type JudgeRequest = <Request extends JudgedRequest>(
  call: JudgedCall,
  request: Request,
  findings: Findings,
) => Promise<Judgement<Request>>
