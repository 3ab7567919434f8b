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

/** The judge that was configured when the call began, and how the call may use it. */
export type CallJudge = {
  readonly judge: Judge
  readonly onError: 'refuse' | 'allow'
  readonly organizationId: string
  /** Counts the questions to the judge. */
  readonly questions?: JudgeCall['questions']
  /** Only known verdicts count; the judge itself is not asked. */
  readonly isKnownOnly?: boolean
  /** Called when the judge has failed and the call goes on without it. */
  onDegraded(): void
}

/** A rule in plain language, with its place in the set. */
export type AskedRule = Pick<RuleOutcome, 'rule' | 'index'>

/**
 * The judge's verdicts on some rules. A rule without a verdict is unscored. If the operator lets calls pass during an outage,
 * it is left out instead. A failure that depends on the text is no outage, because callers could choose texts that switch the
 * judge off. Neither is a judge that refuses this gateway, which stays so until the operator acts.
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

/** Whether calls depend on the judge's verdict on this rule. */
export const needsVerdict = ({ mode, rule }: SetRule) => mode === 'enforcing' && rule.needs.judge

const toQuestion = ({ policyId, version, rule }: SetRule) => ({
  policyId,
  version,
  text: rule.plain,
})

/** Asks the judge; returns the known scores even if the judge fails. */
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
