/** A policy that matched a call, as the event lists it. Score and threshold are in basis points. */
export type MatchReport = {
  policy_id: string
  version: number
  /** `history`: in an earlier answer, which the caller tells. */
  direction: 'request' | 'response' | 'history'
  mode: 'monitoring' | 'enforcing'
  score: number
  threshold: number
}

/**
 * What replays of a policy need to know of a call besides its matches, and no text: how far it was from matching, and what
 * its request was scored with.
 */
export type Features = {
  /** The score of a policy that was evaluated and did not match, unless it is 0. In basis points. */
  readonly scores: Pick<MatchReport, 'policy_id' | 'version' | 'direction' | 'score'>[]
  /** The scores of the request that rules read, 0 to 1. */
  categories: { category: string; score: number }[]
}

/** What refused a call or ended its answer. The members are null where no single policy did. */
export type Refuser = {
  policyId: string | null
  policyName: string | null
  version: number | null
  reasonCode: string
  /** It is the configuration of the policy gateway, whose own report says what it decided. */
  isConfiguration?: boolean
}

type Decision = 'allow' | 'rewrite' | 'summary' | 'escalate' | 'refuse'

/** What the configuration of the policy gateway decided about a call, by all that was found in it. */
export type GatewayReport = {
  policyId: string
  policyName: string
  revision: number
  rolloutMode: string
  /** What it says, whether or not that is enforced. */
  decision: Decision
  reasonCode: string
  triggered: readonly string[]
  /** The terms that were found, as they stand in the lists. */
  allowlistHits: readonly string[]
  denylistHits: readonly string[]
  /** Whom to turn to. */
  escalationPath: string
  /** Other words were said instead of what was blocked. */
  isReplaced: boolean
}

/** Where in a call something was found; `message` is its place in the conversation, null outside of it. */
export type FoundIn = {
  readonly direction: MatchReport['direction']
  readonly part:
    | 'system'
    | 'user'
    | 'tool_result'
    | 'tools'
    | 'document'
    | 'prefill'
    | 'history'
    | 'answer'
  readonly message: number | null
}

/** What a guardrail has decided about the request or the answer of a call, without any text. */
export type GuardrailReport = {
  /** Null: it is the operator's. */
  readonly guardrail_id: string | null
  readonly name: string
  readonly mode: 'monitoring' | 'enforcing'
  readonly direction: 'request' | 'response'
  readonly action: 'allow' | 'block' | 'rewrite' | 'failed'
  /** As the guardrail says, or what went wrong. */
  readonly code: string | null
  /** Of the longest question. */
  readonly took_ms: number
}

/** What the policies of an organization did with a call. */
export type PolicyReport = {
  /** Which state of the policies applied; null if the call was refused before that was known. */
  epoch: number | null
  refusedBy: Refuser | null
  matches: readonly MatchReport[]
  /** Where policies, terms and categories were found. */
  foundIn?: readonly FoundIn[]
  /** Ids of policies that could not be evaluated and let the call pass. */
  unevaluated: readonly string[]
  /** Moderation categories because of which something was blocked. */
  triggered: readonly string[]
  /** What was said instead of what was blocked: which model wrote it, and what it has read and written. */
  replacement?: { readonly model: string; readonly tokens: number } | null
  /** A scorer failed; where nothing refused the call, it went on without that scorer. */
  isDegraded: boolean
  /** The judge failed; where nothing refused the call, it went on without its verdict on enforcing rules. */
  isJudgeDegraded: boolean
  /** Who would have been asked about a call, and was not about a count of tokens. */
  unjudged?: readonly ('scorer' | 'judge' | 'guardrail')[]
  /** Those that were asked. */
  guardrails?: readonly GuardrailReport[]
  /** There are parts that nothing has scored. */
  hasUnscoredParts: boolean
  redactions: readonly RedactionReport[]
  /** Null where no policy applied to the call. */
  features: Features | null
  /** Null without a configuration of the policy gateway, and where the call is outside of its rollout. */
  gateway?: GatewayReport | null
}

/** How much of one kind was found in a call that is redacted. */
type RedactionReport = {
  type: string
  replaced: number
  /** In sealed reasoning that was left out. */
  withheld: number
  /** In the arguments of tool calls. */
  passed: number
  /** Put back into the answer; absent where nothing is to be. */
  restored?: number
}

export const nothingFound: PolicyReport = {
  epoch: null,
  refusedBy: null,
  matches: [],
  unevaluated: [],
  triggered: [],
  isDegraded: false,
  isJudgeDegraded: false,
  hasUnscoredParts: false,
  redactions: [],
  features: null,
}

const listMax = 50
const scoresMax = 200

/** Whether an event may lack matches or scores, because there is no room for all. */
export const isCutShort = (event: { matches: readonly unknown[]; scores: readonly unknown[] }) =>
  event.matches.length >= listMax || event.scores.length >= scoresMax

/** The members of a call's event that tell of policies (docs/specification/audit-events.md#policy-members). */
export function describePolicies(report: PolicyReport) {
  const { epoch, refusedBy, matches, unevaluated, replacement, gateway } = report
  const triggered = [...new Set([...(gateway?.triggered ?? []), ...report.triggered])]
  return {
    policy_epoch: epoch,
    ...(gateway ? describeGateway(gateway, refusedBy) : describeDecision(refusedBy)),
    ...(matches.length > 0 && { matches: pickMatches(matches, refusedBy) }),
    ...(report.foundIn?.length && { found_in: report.foundIn.slice(0, listMax) }),
    ...(unevaluated.length > 0 && { policies_unevaluated: unevaluated.slice(0, listMax) }),
    ...(triggered.length > 0 && { triggered_categories: triggered }),
    ...(replacement && {
      replacement_model: replacement.model,
      replacement_tokens: replacement.tokens,
    }),
    ...(report.isDegraded && !refusedBy && { moderation_degraded: true }),
    ...(report.isJudgeDegraded && !refusedBy && { judge_degraded: true }),
    ...(report.unjudged?.length && !refusedBy && { unjudged: report.unjudged }),
    ...(report.guardrails?.length && { guardrails: report.guardrails.slice(0, listMax) }),
    ...(report.hasUnscoredParts && { unscored_parts: true }),
    ...(report.redactions.length > 0 && { redactions: report.redactions }),
    ...(report.features && describeFeatures(report.features)),
  }
}

const describeFeatures = ({ scores, categories }: Features) => ({
  scores: scores.slice(0, scoresMax),
  ...(categories.length > 0 && { category_scores: categories }),
})

function describeDecision(refusedBy: Refuser | null) {
  const decision = refusedBy ? 'refuse' : 'allow'
  return {
    decision,
    effective_decision: decision,
    enforced: refusedBy !== null,
    reason_code: refusedBy?.reasonCode ?? null,
    policy_id: refusedBy?.policyId ?? null,
    policy_name: refusedBy?.policyName ?? null,
    version: refusedBy?.version ?? null,
  }
}

/** What was applied is never less strict than what a policy or moderation decided; then the configuration's own is beside it. */
function describeGateway(gateway: GatewayReport, refusedBy: Refuser | null) {
  const found = {
    rollout_mode: gateway.rolloutMode,
    ...(gateway.allowlistHits.length > 0 && {
      allowlist_hits: gateway.allowlistHits.slice(0, listMax),
    }),
    ...(gateway.denylistHits.length > 0 && {
      denylist_hits: gateway.denylistHits.slice(0, listMax),
    }),
  }
  if (refusedBy && !refusedBy.isConfiguration) {
    return { ...describeDecision(refusedBy), gateway_decision: gateway.decision, ...found }
  }
  const effective = refusedBy ? appliedBy(gateway) : 'allow'
  return {
    decision: gateway.decision,
    effective_decision: effective,
    enforced: refusedBy !== null,
    reason_code: gateway.reasonCode,
    policy_id: gateway.policyId,
    policy_name: gateway.policyName,
    version: gateway.revision,
    ...found,
    ...(effective === 'escalate' && { escalation_path: gateway.escalationPath }),
  }
}

/** Where no other words could be found, the call was refused. */
function appliedBy({ decision, isReplaced }: GatewayReport): Decision {
  const isReplacing = decision === 'rewrite' || decision === 'summary'
  return isReplacing && !isReplaced ? 'refuse' : decision
}

/** Where there are too many, the one that decided stays, and enforcing ones before monitoring ones. */
function pickMatches(matches: readonly MatchReport[], refusedBy: Refuser | null) {
  if (matches.length <= listMax) return matches
  const rankOf = ({ policy_id, mode }: MatchReport) => {
    if (mode === 'monitoring') return 2
    return policy_id === refusedBy?.policyId ? 0 : 1
  }
  return matches.toSorted((one, other) => rankOf(one) - rankOf(other)).slice(0, listMax)
}
