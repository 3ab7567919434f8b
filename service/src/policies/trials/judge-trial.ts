import { type Asker, runInTurns } from '#platform/steps/steps.ts'
import { trialUnjudged } from '#policies/refusals.ts'
import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'
import { cutAll } from '#text/windows/window-cutter.ts'
import { judgeGrid } from '#text/windows/window-grid.ts'

import { normaliseInSteps } from './find-in-steps.ts'

/** A rule in plain language; the version of a draft is 0. */
type JudgedRule = { readonly policyId: string; readonly version: number; readonly text: string }
type JudgedContent = { direction: 'request' | 'response'; context: string; text: string }

/** Judges a text; the score is null if the judge has not given one. `calls`: how often it had to be asked. */
export type JudgeText = (
  rule: JudgedRule,
  content: JudgedContent,
  asker: Asker,
) => Promise<{ score: number | null; calls: number }>

/** What the judge says of a text: a request as a whole, an answer as an enforcing rule would be asked about it. */
export type TrialVerdict = {
  readonly score: number
  readonly calls: number
  /** Where in the normalised text the rule becomes true; Infinity: nowhere. */
  readonly start: number
}

export const unjudged: TrialVerdict = { score: 0, calls: 0, start: Infinity }

/** As many as of a real answer. */
const atOnce = 4

export type Judging = {
  rule: SetRule
  judgeText: JudgeText
  asker: Asker
}

/** Ends at the first match, as an answer would. `rules` are those of an answer. */
export async function judgeTrial(
  { text, direction }: { text: string; direction: 'request' | 'response' },
  rules: AnswerRules,
  { rule, judgeText, asker }: Judging,
): Promise<TrialVerdict> {
  const { policyId, version, threshold } = rule
  const asked = { policyId, version, text: rule.rule.plain }
  const normalised = await runInTurns(normaliseInSteps(text), asker)
  const needsWhole = direction === 'response' && rules.rules.some(({ formula }) => !formula)
  const isWhole = direction === 'request' || needsWhole
  // What needs the whole answer is shown it as it is.
  const whole = { text: needsWhole ? text : normalised.text, start: 0 }
  const windows = isWhole ? [whole] : cutAll(normalised.text, judgeGrid)
  let [score, calls] = [0, 0]
  for (let first = 0; first < windows.length; first += atOnce) {
    const judged = await Promise.all(
      windows.slice(first, first + atOnce).map(async (window) => ({
        start: window.start,
        ...(await judgeText(asked, { direction, context: '', text: window.text }, asker)),
      })),
    )
    calls += judged.reduce((sum, each) => sum + each.calls, 0)
    if (judged.some((each) => each.score === null)) throw trialUnjudged()
    score = Math.max(score, ...judged.map((each) => each.score ?? 0))
    const match = judged.find((each) => (each.score ?? 0) >= threshold)
    if (match) return { score, calls, start: match.start }
  }
  return { score, calls, start: Infinity }
}
