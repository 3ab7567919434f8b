import type {
  Features,
  FoundIn,
  GuardrailReport,
  MatchReport,
  Refuser,
} from '#audit/policy-report.ts'
import type { ConfiguredCall } from '#inference/configured/configured-call.ts'
import type { InferenceCall } from '#inference/inference-call.ts'
import type { ModelRequest } from '#inference/model-request.ts'
import type { Category } from '#moderation/categories.ts'
import type { JudgedContent, JudgedRule } from '#moderation/judge/judge.ts'

import type { RedactionCounts } from './redaction/call-redaction.ts'
import type { Blocked, Replacement } from './replacement/replacement.ts'

/** A call as far as its policies may know it: one to a model, or one that counts tokens. */
export type CheckedCall = Pick<
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
export type CheckedRequest = Pick<
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

/** What was found out about a call, for its event. It grows while the answer is checked. */
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
  readonly unjudged: Set<'scorer' | 'judge' | 'guardrail'>
  /** What guardrails have decided. */
  readonly guardrails: GuardrailReport[]
  /** There are parts that nothing has scored, in the request or in the answer: images, files, sound, encrypted data. */
  hasUnscoredParts: boolean
  /** What was redacted; null where nothing is to be. */
  redacted: RedactionCounts | null
  /** What replays need; null where no policy applies. */
  features: Features | null
  /** What decided, if anything was blocked. The functions that make the errors of blocks set it. */
  blockedBy: Refuser | null
  /** The configuration of the policy gateway, and what it has found; null where there is none. */
  configured: ConfiguredCall | null
  /** What is to be replaced, if the configuration blocked it and wants that; null: the call is refused. */
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
  guardrails: [],
  hasUnscoredParts: false,
  redacted: null,
  features: null,
})
