import type { PolicyContent } from '@gatehouse/contract/policy'

import { isCutShort } from '#audit/policy-report.ts'
import { thresholdOf } from '#policies/policy.ts'
import { type ExpressionContext, scoresName } from '#policies/rules/facts.ts'
import type { CompiledRule } from '#policies/rules/rule-program.ts'
import { toBasisPoints } from '#policies/rules/score.ts'

import type { RecordedCall } from './recorded-call.ts'

type Direction = 'request' | 'response'

/** What a policy did with a call, or would do. */
type Effect = 'none' | 'noted' | 'refused'

type JudgedVersion = PolicyContent & { readonly version: number }

/** What is replayed. */
export type ReplayedDraft = {
  readonly policyId: string
  readonly content: PolicyContent
  readonly rule: CompiledRule
  /** The version that was in force in an epoch, if there was one. */
  versionAt(epoch: number): JudgedVersion | null
}

/** A rule that needs only the scores of the request, which are recorded. */
export const readsOnlyScores = ({ needs, categories, texts, entities }: CompiledRule): boolean =>
  !needs.judge && categories.size > 0 && texts.size === 0 && entities.size === 0

/**
 * What the policy did with a call, and what it would do by the draft; null: what was recorded is not enough to tell. Other
 * policies are not looked at: a call that one of them refuses can still change here.
 */
export function replayCall(
  draft: ReplayedDraft,
  call: RecordedCall,
): { before: Effect; after: Effect | null } {
  const { content } = draft
  const ofPolicy = call.matches.filter(({ policy_id }) => policy_id === draft.policyId)
  const isRefused = ofPolicy.some(({ mode }) => mode === 'enforcing')
  const before = isRefused ? 'refused' : ofPolicy.length > 0 ? 'noted' : 'none'
  const directions = (['request', 'response'] as const).filter((each) =>
    appliesTo(content, call.projectId, each),
  )
  const matches = directions.map((direction) => wouldMatch(draft, call, direction))
  const effect = content.mode === 'enforcing' ? 'refused' : 'noted'
  const unmatched = matches.includes(null) ? null : 'none'
  return { before, after: matches.includes(true) ? effect : unmatched }
}

function wouldMatch(
  draft: ReplayedDraft,
  call: RecordedCall,
  direction: Direction,
): boolean | null {
  if (direction === 'response' && !call.hasAnswer) return false
  const { policyId, content, rule } = draft
  const threshold = thresholdOf(content)
  const version = draft.versionAt(call.epoch)
  const isJudged =
    version?.rule === content.rule &&
    appliesTo(version, call.projectId, direction) &&
    !call.unevaluated.includes(policyId)
  if (!isJudged) return direction === 'request' ? matchByScores(rule, threshold, call) : null
  const recorded = [...call.matches, ...call.scores].find(
    (each) => each.policy_id === policyId && each.direction === direction,
  )
  if (recorded) return recorded.score >= threshold
  if (isCutShort(call)) return null
  // It did not match, so it was below its threshold, or was not asked, which would happen again.
  if (threshold >= thresholdOf(version)) return false
  // Where every other score is recorded, it was 0.
  return call.blockedIn !== direction && recordsScores(version, rule, direction) ? false : null
}

/** Whether every score above 0 is recorded. */
function recordsScores(
  { mode }: PolicyContent,
  { needs }: CompiledRule,
  direction: Direction,
): boolean {
  // Answers are let go in pieces where they are enforced, and the judge is asked later where it only monitors.
  return direction === 'request'
    ? mode === 'enforcing' || !needs.judge
    : mode === 'monitoring' && !needs.judge
}

function matchByScores(
  rule: CompiledRule,
  threshold: number,
  { categories, projectId }: RecordedCall,
): boolean | null {
  const isScored = [...rule.categories].every((category) => categories.has(category))
  if (!rule.evaluate || !readsOnlyScores(rule) || !isScored) return null
  const known = { direction: 'request', project_id: projectId ?? '', [scoresName]: categories }
  try {
    return toBasisPoints(rule.evaluate(known as unknown as ExpressionContext)) >= threshold
  } catch {
    return null // it reads something that was not recorded
  }
}

function appliesTo(
  { scope, project_ids, direction }: PolicyContent,
  projectId: string | null,
  asked: Direction,
): boolean {
  const isInScope =
    scope === 'organization' || (projectId !== null && project_ids.includes(projectId))
  return isInScope && ['both', asked].includes(direction)
}
