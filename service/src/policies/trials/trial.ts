import type { PolicyContent } from '@gatehouse/contract/policy'
import type { PolicyTrialResults } from '@gatehouse/contract/policy-evaluation'

import { type Asker, runInTurns, type Steps } from '#platform/steps/steps.ts'
import { thresholdOf } from '#policies/policy.ts'
import { trialUnscored } from '#policies/refusals.ts'
import type { WindowAtom } from '#policies/rules/answer-rules.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import type { CompiledRule } from '#policies/rules/rule-program.ts'
import { evaluateInSlices, RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import { findCut } from './find-cut.ts'
import { normaliseInSteps } from './find-in-steps.ts'
import { createMatchFinder } from './find-matches.ts'
import { holdbackOf } from './holdback.ts'
import { judgeTrial, type JudgeText, type TrialVerdict, unjudged } from './judge-trial.ts'
import { type ScoreTextFor, scoreTrial, type Scoring, type TrialScores } from './score-trial.ts'

type TrialText = { readonly text: string; readonly direction: 'request' | 'response' }
type Verdict = {
  readonly score: number
  readonly isMatch: boolean
  /** Of the judge, if the rule has plain language. */
  readonly judged: TrialVerdict
}
type Result = PolicyTrialResults['results'][number]
/** Where in the normalised text an atom becomes true. */
type StartOf = (atom: WindowAtom) => number

/** What trials of any caller depend on. */
export type TrialsDeps = Omit<TrialDeps, 'scoreText'> & { scoreTextFor: ScoreTextFor }

export type TrialDeps = { engine: PatternEngine; judgeText: JudgeText } & Pick<
  Scoring,
  'scoreText' | 'gridOf'
>

/** What is tried; the version of a draft is 0. */
type Tried = PolicyContent & { readonly policyId: string; readonly version: number }

export type Trial = {
  judge(tried: TrialText): Promise<Verdict>
  /** The verdict and what led to it. */
  explain(tried: TrialText): Promise<Result>
  /** How much of a streamed answer an enforcing version would hold back. */
  readonly holdback: number | 'full' | 'none'
}

const noMatch: Verdict = { score: 0, isMatch: false, judged: unjudged }

/**
 * Tries the rule of a draft or of a version on texts, as if each were all that a caller sends or a model answers.
 * It uses what judges calls, so the results are those of real traffic with the same text.
 */
export function* createTrial(
  content: Tried,
  rule: CompiledRule,
  { engine, scoreText, gridOf, judgeText }: TrialDeps,
  asker: Asker,
): Steps<Trial> {
  const inSet = toSetRule(content, rule)
  const set = yield* RuleSet.buildInSteps([inSet], engine)
  // Only enforcing rules hold answers back, and an author wants to know it before a rule is one.
  const enforcing = yield* RuleSet.buildInSteps([{ ...inSet, mode: 'enforcing' }], engine)
  const findMatches = yield* createMatchFinder(rule, engine)
  const isChecked = (direction: TrialText['direction']) =>
    content.direction === 'both' || content.direction === direction

  const score = (tried: TrialText) =>
    requireScores(tried, { categories: set.categories, scoreText, gridOf, asker })

  async function judgeScored(tried: TrialText, { highest }: TrialScores): Promise<Verdict> {
    const { text, direction } = tried
    const open = set.openTexts(factsOf(text, direction), [text])
    const [outcome] = rule.needs.judge
      ? await runInTurns(open.gates(highest), asker)
      : await evaluateInSlices(open, asker, highest)
    if (!outcome) return noMatch
    if (!rule.needs.judge) return { ...outcome, judged: unjudged }
    return outcome.isMatch ? judgePlainly(tried) : noMatch
  }

  async function judgePlainly(tried: TrialText): Promise<Verdict> {
    const opening = enforcing.openAnswerInSteps(factsOf(tried.text, tried.direction))
    const answerRules = await runInTurns(opening, asker)
    const judged = await judgeTrial(tried, answerRules, { rule: inSet, judgeText, asker })
    return { score: judged.score, isMatch: judged.score >= inSet.threshold, judged }
  }

  async function judge(tried: TrialText): Promise<Verdict> {
    if (!isChecked(tried.direction)) return noMatch
    return judgeScored(tried, await score(tried))
  }

  /** What of a text matches, and where it would be cut if it does. */
  async function findPlaces({ text, direction }: TrialText, startOf: StartOf | null) {
    const normalised = await runInTurns(normaliseInSteps(text), asker)
    const matches = isChecked(direction) ? await runInTurns(findMatches(normalised), asker) : []
    if (!startOf || direction === 'request') return { matches, cut: null }
    const rules = await runInTurns(enforcing.openAnswerInSteps(factsOf(text, direction)), asker)
    const cut = await findCut(normalised.text, { rules, startOf, gridOf, asker })
    return { matches, cut: normalised.originalOffset(cut) }
  }

  async function explain(tried: TrialText): Promise<Result> {
    const startedAtMs = performance.now()
    const scores = isChecked(tried.direction) ? await score(tried) : null
    const verdict = scores ? await judgeScored(tried, scores) : noMatch
    const startOf: StartOf = (atom) =>
      (atom.kind === 'score' ? scores?.startOf(atom) : verdict.judged.start) ?? Infinity
    const places = await findPlaces(tried, verdict.isMatch ? startOf : null)
    return { ...describe(verdict, startedAtMs), ...places }
  }

  return {
    judge,
    explain,
    holdback: isChecked('response') ? holdbackOf(rule) : ('none' as const),
  }
}

const toSetRule = (tried: Tried, rule: CompiledRule): SetRule => {
  const { policyId, version, mode } = tried
  return { policyId, policyName: '', version, mode, threshold: thresholdOf(tried), rule }
}

/** The verdict on a text, as it is told. */
const describe = ({ score, isMatch, judged }: Verdict, startedAtMs: number) => ({
  score,
  matched: isMatch,
  judge_calls: judged.calls,
  took_ms: Math.round((performance.now() - startedAtMs) * 1000) / 1000,
})

/** Throws where a score that the rule reads cannot be had. */
async function requireScores({ text, direction }: TrialText, scoring: Scoring) {
  const normalised = await runInTurns(normaliseInSteps(text), scoring.asker)
  const scores = await scoreTrial({ text: normalised.text, direction }, scoring)
  if (scores.highest.size < scoring.categories.size) throw trialUnscored()
  return scores
}

/** A call about which nothing is known but its text. */
const factsOf = (text: string, direction: TrialText['direction']): CallFacts => ({
  direction,
  model: '',
  projectId: '',
  endpoint: '',
  role: direction === 'request' ? 'user' : 'assistant',
  isStreamed: false,
  inputTokens: 0,
  categories: [],
  userText: direction === 'request' ? [text] : [],
  lastMessage: direction === 'request' ? [text] : [],
  system: [],
  tools: [],
  history: [],
})
