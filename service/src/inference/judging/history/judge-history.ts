import type { Json } from '#formats/answer.ts'
import type { EarlierAnswer } from '#formats/texts/request-texts.ts'
import type { ConfiguredCall } from '#inference/gateway/configured-call.ts'
import { type CallJudge, judgeRules } from '#inference/judging/verdicts/ask-judge.ts'
import { contentOfHistory } from '#inference/judging/verdicts/judge-texts.ts'
import type { Findings } from '#inference/judging/verdicts/judgement.ts'
import { findUnscored, noteMatches } from '#inference/judging/verdicts/note-matches.ts'
import {
  type Decider,
  historyBlocked,
  historyUnconfigured,
  ruleUnscored,
} from '#inference/judging/verdicts/policy-refusal.ts'
import type { JudgedContent } from '#moderation/judge.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import type { OpenTexts, RuleOutcome, RuleSet, SetRule } from '#policies/rules/rule-set.ts'
import type { CategoryScores } from '#policies/rules/score.ts'
import { type Asker, runInTurns } from '#text/steps.ts'

import { noteInHistory, placeOf } from './history-texts.ts'
import type { ModeratedHistory } from './moderate-history.ts'

type Judged = {
  /** By what answers are judged, by the rules of requests as well, or only by what is always blocked. */
  mode: ConfiguredCall['historyMode']
  findings: Findings
  answers: readonly EarlierAnswer[]
  /** The rules of answers, and those of requests. */
  answered: RuleSet
  asked: RuleSet
  /** Whether personal data is put back into answers. */
  isRestored: boolean
  /** Of the request. */
  facts: CallFacts
  body: Json
  moderated: ModeratedHistory
  callJudge: CallJudge | null
  asker: Asker
}

/** Earlier answers, which the caller tells: each gets the verdict that it would get as an answer to the messages before it. */
export type JudgedHistory = {
  /** Why the request may not be sent, as far as this process can tell without asking anybody. */
  beforeHold(): Promise<ApiError | null>
  /** Asks scorers and the judge; throws what the caller is to be told. `sent` are the answers as those may see them. */
  afterHold(sent: readonly EarlierAnswer[]): Promise<void>
}

const nothingSaid: JudgedHistory = {
  beforeHold: () => Promise.resolve(null),
  afterHold: () => Promise.resolve(),
}

export function judgeHistory(judged: Judged): JudgedHistory {
  const { answers, moderated, mode, body } = judged
  if (answers.length === 0) return nothingSaid
  const place = (number: number) => placeOf(body, number)
  return {
    async beforeHold() {
      const found = mode === 'skip' ? null : await judgeExactly(judged)
      return found ?? (await moderated.checkLocally(answers, place))
    },
    async afterHold(sent) {
      await moderated.checkRemotely(sent, place)
      if (mode === 'skip') return
      for (const set of setsOf(judged)) await judgeByModels(judged, set, sent)
    },
  }
}

type HistorySet = { set: RuleSet; direction: CallFacts['direction'] }

/** Rules of requests are not applied otherwise: their author allowed answers to say it. */
function setsOf({ answered, asked, mode }: Judged): HistorySet[] {
  const sets: HistorySet[] = [{ set: answered, direction: 'response' }]
  if (mode === 'both') sets.push({ set: asked, direction: 'request' })
  return sets.filter(({ set }) => set.rules.some((rule) => rule.mode === 'enforcing'))
}

async function judgeExactly(judged: Judged): Promise<ApiError | null> {
  const { answers, asker, findings, body } = judged
  const { configured } = findings
  const sets = setsOf(judged)
  for (const [number, answer] of answers.entries()) {
    for (const each of sets) {
      const open = openAnswer(judged, each, answer)
      const outcomes = await runInTurns(open.exact(), asker)
      const matching = await withoutTrivial(outcomes, { judged, each, answer })
      const decider = noteMatches(findings, matching, each.set, 'history')
      if (decider) return blocked(judged, decider, [number])
    }
    const isDenied = configured && (await runInTurns(configured.readHistory(answer.said), asker))
    if (!isDenied) continue
    noteInHistory(findings, answer)
    return historyUnconfigured(findings, configured, placeOf(body, number))
  }
  return null
}

const openAnswer = ({ facts }: Judged, { set, direction }: HistorySet, answer: EarlierAnswer) =>
  set.openTexts({ ...facts, direction, lastMessage: answer.question }, answer.said)

/** Where a judge has found something in one of several answers, nobody knows in which. */
function blocked(
  { findings, body, answers }: Judged,
  decider: Decider,
  numbers: readonly number[],
) {
  const [only, ...others] = numbers
  for (const number of numbers) noteInHistory(findings, answers[number])
  const place = placeOf(body, only !== undefined && others.length === 0 ? only : null)
  return historyBlocked(findings, decider, place)
}

/** Values that were put back into an answer were not in it when it was judged. */
const applies = ({ isRestored }: Judged, rule: SetRule | undefined): boolean =>
  rule?.mode === 'enforcing' && !rule.rule.asksSize && !(isRestored && rule.rule.entities.size > 0)

type Matched = { judged: Judged; each: HistorySet; answer: EarlierAnswer }

/**
 * The enforcing rules that match what an earlier answer says. One that also matches an answer which says nothing, or that asks
 * for a size, is left out: clients shorten what they send back. So are rules that only monitor: a match would count again with
 * every turn.
 */
async function withoutTrivial(
  outcomes: readonly RuleOutcome[],
  { judged, each, answer }: Matched,
  evaluate = (open: OpenTexts) => open.exact(),
): Promise<readonly RuleOutcome[]> {
  const { rules } = each.set
  const enforcing = outcomes.filter(
    ({ index, isMatch }) => isMatch && applies(judged, rules[index]),
  )
  if (enforcing.length === 0) return []
  const empty = openAnswer(judged, each, { ...answer, said: [] })
  const trivial = await runInTurns(evaluate(empty), judged.asker)
  const isTrivial = new Set(trivial.filter(({ isMatch }) => isMatch).map(({ index }) => index))
  return enforcing.filter(({ index }) => !isTrivial.has(index))
}

/**
 * Evaluates the rules that read scores, answer by answer, and those in plain language. A judge is asked about all answers at once
 * that the same rules apply to: it reads a long text in pieces, and knows the earlier ones from the turn before.
 */
async function judgeByModels(judged: Judged, each: HistorySet, sent: readonly EarlierAnswer[]) {
  const { set } = each
  if (set.categories.size === 0 && !set.needsJudge) return
  const questions = new Map<string, { indexes: readonly number[]; numbers: number[] }>()
  for (const [number, answer] of judged.answers.entries()) {
    const scores = await judged.moderated.scoresOf(sent[number] ?? answer)
    const matched = { judged, each, answer }
    requireAllowed(judged, each, await judgeByScores(matched, scores), [number])
    const indexes = await findAsked(matched, scores)
    const question = questions.get(indexes.join()) ?? { indexes, numbers: [] }
    question.numbers.push(number)
    if (indexes.length > 0) questions.set(indexes.join(), question)
  }
  for (const { indexes, numbers } of questions.values()) {
    const said = numbers.flatMap((number) => sent[number] ?? judged.answers[number] ?? [])
    const outcomes = await askJudge(judged, { each, indexes, content: contentOfHistory(said) })
    requireAllowed(judged, each, outcomes, numbers)
  }
}

const noScores = (categories: CategoryScores) =>
  new Map([...categories.keys()].map((category) => [category, 0]))

async function judgeByScores(matched: Matched, scores: CategoryScores) {
  const { judged, each, answer } = matched
  if (each.set.categories.size === 0) return []
  const open = openAnswer(judged, each, answer)
  const outcomes = await runInTurns(open.scored(scores), judged.asker)
  const zero = noScores(scores)
  const matching = await withoutTrivial(outcomes, matched, (empty) => empty.scored(zero))
  return [...matching.filter(({ isUnscored }) => !isUnscored), ...unscoredOf(outcomes)]
}

const unscoredOf = (outcomes: readonly RuleOutcome[]) =>
  outcomes.filter(({ isUnscored }) => isUnscored)

/** The rules in plain language that a judge is to be asked about. */
async function findAsked({ judged, each, answer }: Matched, scores: CategoryScores) {
  const { set } = each
  if (!judged.callJudge || !set.needsJudge) return []
  const open = openAnswer(judged, each, answer)
  const gates = await runInTurns(open.gates(scores), judged.asker)
  return gates
    .filter(({ index, isMatch }) => isMatch && applies(judged, set.rules[index]))
    .map(({ index }) => index)
}

type Question = { each: HistorySet; indexes: readonly number[]; content: JudgedContent }

async function askJudge(
  { callJudge, asker }: Judged,
  { each: { set, direction }, indexes, content }: Question,
): Promise<readonly RuleOutcome[]> {
  if (!callJudge || content.text === '') return []
  const asked = { set, indexes, contents: [{ ...content, direction }] }
  return judgeRules(callJudge, asked, asker.signal)
}

/** A rule that matches decides, also where another could not be evaluated. */
function requireAllowed(
  judged: Judged,
  { set }: HistorySet,
  outcomes: readonly RuleOutcome[],
  numbers: readonly number[],
) {
  const first = noteMatches(judged.findings, outcomes, set, 'history')
  if (first) throw blocked(judged, first, numbers)
  const unscored = findUnscored(outcomes, set)
  if (unscored) throw ruleUnscored(unscored)
}
