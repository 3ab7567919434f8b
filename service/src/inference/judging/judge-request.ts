import type { RequestTexts } from '#formats/texts/request-texts.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import type { OpenTexts, RuleOutcome, RuleSet } from '#policies/rules/rule-set.ts'
import type { CategoryScores } from '#policies/rules/score.ts'
import { type Asker, runInTurns, type Steps } from '#text/steps.ts'

import { locateMatches } from './locate-matches.ts'
import { type CallJudge, judgeRules } from './verdicts/ask-judge.ts'
import { contentsOfRequest, contextOfRequest } from './verdicts/judge-texts.ts'
import type { JudgedRequest, Judgement } from './verdicts/judgement.ts'
import { findUnscored, noteMatches, noteUnevaluated } from './verdicts/note-matches.ts'
import { requestBlocked, ruleUnscored } from './verdicts/policy-refusal.ts'
import { watchRequest } from './watch-texts.ts'

export type Judging = {
  judgement: Judgement<JudgedRequest>
  set: RuleSet
  texts: RequestTexts
  open: OpenTexts
  facts: CallFacts
  asker: Asker
}

/** Evaluates the rules that need nothing else; a match becomes the refusal of the judgement. */
export async function judgeExactly(judging: Judging) {
  const { judgement, set, open } = judging
  if (set.rules.length === 0) return
  const outcomes = await evaluate(judging, open.exact())
  const first = noteMatches(judgement, outcomes, set, 'request')
  const matching = new Set(outcomes.filter(isFound).map(({ index }) => index))
  if (matching.size > 0) {
    await locateMatches({ ...judging, findings: judgement, texts: judging.texts.text }, matching)
  }
  if (first) judgement.refusal = requestBlocked(judgement, first)
}

/** Whether a rule matches because of what is said, and not because it has no value. */
const isFound = ({ isMatch, isError }: RuleOutcome) => isMatch && !isError

/** Evaluates the rules that read scores; throws where the request may not be sent. */
export async function judgeByScores(judging: Judging, scores: CategoryScores) {
  const { judgement, set, open } = judging
  if (set.categories.size === 0) return
  if (judgement.features) judgement.features.categories = listScores(scores)
  requireAllowed(judging, await evaluate(judging, open.scored(scores)))
}

const listScores = (scores: CategoryScores) =>
  [...scores].map(([category, score]) => ({ category, score }))

/**
 * Asks the judge about the enforcing rules in plain language; throws where the request may not be sent. What the others are to be
 * asked about is kept.
 */
export async function judgePlainly(judging: Judging, scores: CategoryScores, callJudge: CallJudge) {
  const { set, open, texts, asker } = judging
  if (!set.needsJudge) return
  const gates = await evaluate(judging, open.gates(scores))
  const enforcing = gates.filter(({ index }) => set.rules[index]?.mode === 'enforcing')
  // A gate that reads a score that is missing hides no match of another rule.
  const unknown = enforcing.filter(({ isUnscored }) => isUnscored)
  const indexes = enforcing.filter(({ isMatch }) => isMatch).map(({ index }) => index)
  const asked = {
    set,
    indexes,
    contents: contentsOfRequest({ ...texts, context: contextOfRequest(texts) }),
  }
  const judged = await judgeRules(callJudge, asked, asker.signal)
  requireAllowed(judging, [...unknown, ...judged])
  watchRequest({ findings: judging.judgement, set, gates }, texts)
}

/** A rule that matches decides, also where another could not be evaluated. */
function requireAllowed({ judgement, set }: Judging, outcomes: readonly RuleOutcome[]) {
  const first = noteMatches(judgement, outcomes, set, 'request')
  if (first) throw requestBlocked(judgement, first)
  const unscored = findUnscored(outcomes, set)
  if (unscored) throw ruleUnscored(unscored)
}

/** Where it fails, rules that only monitor are no reason to refuse the request. */
async function evaluate(
  { judgement, set, asker }: Judging,
  steps: Steps<readonly RuleOutcome[]>,
): Promise<readonly RuleOutcome[]> {
  try {
    return await runInTurns(steps, asker)
  } catch (error) {
    if (set.rules.some(({ mode }) => mode === 'enforcing')) throw error
    noteUnevaluated(judgement, set)
    return []
  }
}
