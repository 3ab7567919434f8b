import type { Checked } from '#inference/enforcement/check.ts'
import { findUnscored, noteMatches, noteUnevaluated } from '#inference/enforcement/note-matches.ts'
import { requestBlocked, ruleUnscored } from '#inference/enforcement/refusals.ts'
import type { ApiError } from '#platform/api-error.ts'
import { runInTurns, type Steps } from '#platform/steps/steps.ts'
import type { RuleOutcome } from '#policies/rules/rule-set.ts'

/** Evaluates rules. If that fails, the request is refused only if some rule enforces. */
export async function evaluate(
  { findings, set, asker }: Pick<Checked, 'findings' | 'set' | 'asker'>,
  steps: Steps<readonly RuleOutcome[]>,
): Promise<readonly RuleOutcome[]> {
  try {
    return await runInTurns(steps, asker)
  } catch (error) {
    if (set.rules.some(({ mode }) => mode === 'enforcing')) throw error
    noteUnevaluated(findings, set)
    return []
  }
}

/** Notes which rules matched. A rule that matches refuses the request, even if another one could not be evaluated. */
export function refuseByRules(
  { findings }: Pick<Checked, 'findings'>,
  outcomes: readonly RuleOutcome[],
): ApiError | null {
  const first = noteMatches(findings, outcomes, 'request')
  if (first) return requestBlocked(findings, first)
  const unscored = findUnscored(outcomes)
  return unscored ? ruleUnscored(unscored) : null
}
