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

/** The part of a call that its policies may know. The call may be one to a model or one that counts tokens. */
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

/** The part of a request that its policies may know. The estimate of a request whose tokens are only counted is 0. */
export type CheckedRequest = Pick<
  ModelRequest,
  'body' | 'turn' | 'model' | 'isStreamed' | 'hasUnseenInput'
> & {
  estimate: Pick<ModelRequest['estimate'], 'tokens'>
}

/** Texts about which the judge will be asked when the call is over, because of monitoring rules. */
export type WatchedTexts = {
  readonly direction: 'request' | 'response'
  readonly rules: readonly (JudgedRule & { readonly threshold: number })[]
  /** How many characters these texts keep in memory until then. */
  readonly length: number
  /** Slow for a long text, so it must not run while a caller waits. */
  contents(): readonly JudgedContent[]
}

/** Everything that was found out about a call, for its event. It grows while the answer is checked. */
export type Findings = {
  readonly matches: MatchReport[]
  /** Where matches and categories were found. */
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
  /** What was redacted; null if the call is not redacted. */
  redacted: RedactionCounts | null
  /** What replays need; null if no policy applies. */
  features: Features | null
  /** What blocked the call, if anything did. The functions that create the errors of blocks set it. */
  blockedBy: Refuser | null
  /** The configuration of the policy gateway, and what it has found; null where there is none. */
  configured: ConfiguredCall | null
  /** What is to be replaced, if the configuration blocked it and wants a replacement; null if the call is refused. */
  replaceable: Blocked | null
  /** The replacement of what was blocked, if there is one. */
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
