import type { Piece } from '#formats/answer.ts'
import type { UpstreamFormats } from '#formats/format.ts'
import type { TextReader } from '#formats/texts/frame-texts.ts'
import { joinsWords } from '#formats/texts/text-views.ts'
import type { Ending } from '#inference/enforcement/check.ts'
import type { Findings } from '#inference/enforcement/findings.ts'
import { noteReplaceable } from '#inference/enforcement/lists/configuration.ts'
import type { ScoredAnswer } from '#inference/enforcement/moderation/score-answer.ts'
import {
  findUnscored,
  noteFound,
  noteMatches,
  noteUnevaluated,
  whyUnscored,
} from '#inference/enforcement/note-matches.ts'
import type { JudgedAnswer } from '#inference/enforcement/plain-language/judge-answer.ts'
import { answerBeyondLimits, answerUnjudged } from '#inference/enforcement/refusals.ts'
import { ScorerFailure } from '#moderation/scorer.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import type { Clock } from '#platform/clock.ts'
import { type Asker, runInTurns } from '#platform/steps/steps.ts'
import { AnswerGuard } from '#policies/guard/answer-guard.ts'
import type { GuardBlock, GuardEnd } from '#policies/guard/guard-end.ts'
import { ScorerUnavailable } from '#policies/guard/window-queue.ts'
import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import { evaluateInSlices, type RuleOutcome, type RuleSet } from '#policies/rules/rule-set.ts'
import { scoreMax } from '#policies/rules/score.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'

import { AnswerTexts } from './answer-texts.ts'
import { Changes, passCleared } from './pass-cleared.ts'

/** Logs what an operator should look at, at most once in a while. */
export type LogProblem = (code: string, error: unknown) => void

type Guarding = {
  formats: UpstreamFormats
  steadyNow: Clock
  cancellation: Cancellation
  logProblem: LogProblem
  set: RuleSet
  /** With everything else that ends an answer. */
  rules: AnswerRules<Ending>
  facts: CallFacts
  /** The beginning of the answer, where the caller has written it. */
  prefill?: string
  findings: Findings
  /** Whose share of the threads is used. */
  owner: string
  scored: ScoredAnswer
  judged: JudgedAnswer
}

/**
 * Guards an answer by its rules. Enforcing rules hold back what they have not cleared; monitoring ones hold back nothing and
 * are evaluated when the answer is over, however it ends.
 */
export function guardAnswer(
  pieces: AsyncIterable<Piece>,
  guarding: Guarding,
): AsyncGenerator<Piece> {
  const texts = new AnswerTexts()
  const { steadyNow, cancellation, set, rules, facts, scored, judged } = guarding
  const changes = new Changes()
  let isTooLongAtEnd = false
  const isBeyondLimits = ({ kind }: GuardEnd<Ending>) =>
    kind === 'beyond_limits' || (kind === 'unavailable' && isTooLongAtEnd)
  const asker = askerOf(guarding)
  const now = () => steadyNow().getTime()
  let atEnd: readonly RuleOutcome[] = []
  const guard = new AnswerGuard(rules, {
    scorers: scorersOf(guarding),
    owner: guarding.owner,
    joinsWords,
    now,
    onChange: changes.announce,
    onUnexpected(error) {
      // Failures of scorers are recorded where they are asked.
      if (!(error instanceof ScorerFailure)) guarding.logProblem('answer_not_scored', error)
    },
    // The guard knows a text that was interrupted only in parts.
    async evaluateAtEnd() {
      isTooLongAtEnd = texts.isTooLong
      if (isTooLongAtEnd) throw new Error('the answer is too long to be judged as a whole')
      const [all, scores] = [texts.all(), scored.highest()]
      const open = set.openTexts(facts, texts.passages())
      const known = await evaluateInSlices(open, asker, scores)
      atEnd = [...known, ...(await judged.judgeWhole({ texts: all, open, scores, asker }))]
      requireScored(atEnd, guarding)
      return atEnd
    },
  })
  return passCleared(pieces, {
    guard,
    changes,
    asker,
    cancellation,
    createReader: (piece) => readerFor(piece, guarding),
    onTexts(found) {
      texts.add(found)
      if (found.hasUnreadable) guarding.findings.hasUnscoredParts = true
    },
    async onEnd() {
      await noteConfigured(texts, guarding)
      await noteMonitored(texts, guarding)
    },
    toError(end) {
      if (isBeyondLimits(end)) return answerBeyondLimits()
      if (end.kind !== 'block') return answerUnjudged(guard.failure)
      const error = toError(end, atEnd, guarding)
      noteReplaceable(guarding.findings, 'response', texts.all())
      return error
    },
  })
}

/** Everything that decides about windows of the answer. */
export const scorersOf = ({ scored, judged }: Pick<Guarding, 'scored' | 'judged'>) => [
  ...scored.scorers,
  ...(judged.scorer ? [judged.scorer] : []),
]

function requireScored(outcomes: readonly RuleOutcome[], { scored }: Guarding) {
  if (!findUnscored(outcomes)) return
  const cause = whyUnscored(outcomes) ?? scored.failure?.()
  throw new ScorerUnavailable('a score that a rule reads is missing', { cause })
}

function readerFor(
  { format }: Piece,
  { formats, prefill }: Pick<Guarding, 'formats' | 'prefill'>,
): TextReader {
  const upstreamFormat = formats.get(format)
  if (!upstreamFormat) throw new Error(`an answer came in the unknown format ${format}`)
  return upstreamFormat.createTextReader(prefill)
}

function toError(
  { ending, isError }: GuardBlock<Ending>,
  atEnd: readonly RuleOutcome[],
  { facts, findings, judged }: Guarding,
): ApiError {
  noteFound(findings, { direction: 'response', part: 'answer', message: null })
  const scoreOf = (rule: SetRule) =>
    atEnd.find((outcome) => outcome.rule === rule)?.score ??
    judged.scores.get(rule) ??
    // An expression that did not need the whole answer is true or false.
    scoreMax
  return ending.toError({ findings, facts, isError, scoreOf })
}

/** What a model has said is judged to its end, also when the caller has hung up: it is charged, and its matches count. */
const askerOf = ({ owner }: Guarding): Asker => ({
  owner,
  get signal() {
    return new AbortController().signal
  },
})

/** Where a configuration is not enforced, what it looks for in answers is only recorded. */
async function noteConfigured(texts: AnswerTexts, guarding: Guarding) {
  const { configured } = guarding.findings
  if (!configured || configured.isEnforced) return
  await runInTurns(configured.readAnswer(texts.passages()), askerOf(guarding))
}

async function noteMonitored(texts: AnswerTexts, guarding: Guarding) {
  const { set, facts, findings, scored } = guarding
  if (!set.rules.some(({ mode }) => mode === 'monitoring')) return
  if (texts.isTooLong) return noteUnevaluated(findings, set)
  try {
    const [all, scores, asker] = [texts.all(), scored.highest(), askerOf(guarding)]
    const open = set.openTexts(facts, texts.passages())
    const outcomes = await evaluateInSlices(open, asker, scores)
    const monitored = outcomes.filter(({ rule }) => rule.mode === 'monitoring')
    noteMatches(findings, monitored, 'response')
    await guarding.judged.watch({ texts: all, open, scores, asker }, findings)
  } catch {
    noteUnevaluated(findings, set)
  }
}
