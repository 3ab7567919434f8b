import type { MonitoringReport } from '#audit/event.ts'
import type { WatchedTexts } from '#inference/enforcement/findings.ts'
import { ask } from '#inference/enforcement/plain-language/ask-judge.ts'
import type { Judge, JudgeCall } from '#moderation/judge/judge.ts'

/** Asks the judge about one direction of a call. Throws the reason of the signal, and unexpected errors. */
export async function judgeWatched(
  judge: Judge,
  { direction, rules, contents }: WatchedTexts,
  call: JudgeCall,
): Promise<Omit<MonitoringReport, 'judge'>> {
  const scores = new Map<string, number>()
  let reason: string | null = null
  // One after the other, so that each gets the judge's whole time. No caller is waiting.
  for (const content of contents()) {
    const reply = await ask(judge, rules, content, call)
    reason ??= reply.failure?.kind ?? null
    for (const [policyId, score] of reply.scores) {
      scores.set(policyId, Math.max(score, scores.get(policyId) ?? 0))
    }
  }
  const judged = rules.map((rule) => ({ ...rule, score: scores.get(rule.policyId) ?? 0 }))
  const isMatch = ({ score, threshold }: (typeof judged)[number]) => score >= threshold
  const matches = judged.filter(isMatch).map(({ policyId, version, score, threshold }) => ({
    policy_id: policyId,
    version,
    direction,
    mode: 'monitoring' as const,
    score,
    threshold,
  }))
  // A match counts even if other verdicts are missing; without a match, a missing verdict might have been one.
  const unknown = reason === null ? [] : judged.filter((each) => !isMatch(each))
  return { matches, unevaluated: unknown.map(({ policyId }) => policyId), reason }
}
