import {
  type Judge,
  type JudgeCall,
  type JudgedContent,
  type JudgedRule,
  JudgeFailure,
  worstOf,
} from '#moderation/judge/judge.ts'
import type { RuleOutcome } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'

/** What one call may ask of the judge that was configured when it began. */
export type CallJudge = {
  readonly judge: Judge
  readonly onError: 'refuse' | 'allow'
  readonly organizationId: string
  /** What it is asked counts in these. */
  readonly questions?: JudgeCall['questions']
  /** It is not asked about what is not known. */
  readonly isKnownOnly?: boolean
  /** The judge failed, and the call goes on without it. */
  onDegraded(): void
}

/** A rule in plain language, with its place in the set. */
export type AskedRule = Pick<RuleOutcome, 'rule' | 'index'>

/**
 * What the judge says of some rules. A rule that it has not judged is unscored, or missing where the operator lets calls
 * pass in an outage. What depends on what was sent is none: callers would choose texts that switch the judge off. Nor is a judge
 * that refuses this gateway, which stays so until the operator acts.
 */
export async function judgeRules(
  { judge, onError, onDegraded, ...call }: CallJudge,
  { rules, contents }: { rules: readonly AskedRule[]; contents: readonly JudgedContent[] },
  signal: AbortSignal,
): Promise<readonly RuleOutcome[]> {
  if (rules.length === 0) return []
  const questions = rules.map(({ rule }) => toQuestion(rule))
  const replies = await Promise.all(
    contents.map((content) => ask(judge, questions, content, { ...call, signal })),
  )
  const failures = replies.flatMap(({ failure }) => failure ?? [])
  const mayPass = onError === 'allow' && failures.every(({ isOutage }) => isOutage)
  if (failures.length > 0 && mayPass) onDegraded()
  return rules.flatMap(({ index, rule }): RuleOutcome[] => {
    const score = Math.max(0, ...replies.map(({ scores }) => scores.get(rule.policyId) ?? 0))
    const isMatch = score >= rule.threshold
    if (isMatch || failures.length === 0) return [{ rule, index, score, isMatch, isError: false }]
    const failure = worstOf(failures)
    return mayPass
      ? []
      : [{ rule, index, score, isMatch: false, isError: true, isUnscored: true, failure }]
  })
}

const toQuestion = ({ policyId, version, rule }: SetRule) => ({
  policyId,
  version,
  text: rule.plain,
})

/** The scores that are known, also where the judge fails. */
export async function ask(
  judge: Judge,
  rules: readonly JudgedRule[],
  content: JudgedContent,
  call: JudgeCall,
) {
  try {
    return { scores: await judge.judge(rules, content, call), failure: null }
  } catch (error) {
    if (call.signal.aborted || !(error instanceof JudgeFailure)) throw error
    return { scores: error.atLeast, failure: error }
  }
}
