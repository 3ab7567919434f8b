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
import type { ApiError } from '#platform/api-error.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import type { OpenTexts, RuleOutcome, RuleSet } from '#policies/rules/rule-set.ts'
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
      if (decider) return blocked(judged, decider, number)
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

function blocked({ findings, body, answers }: Judged, decider: Decider, number: number) {
  noteInHistory(findings, answers[number])
  return historyBlocked(findings, decider, placeOf(body, number))
}

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
  const { set } = each
  const enforcing = outcomes.filter(({ index, isMatch }) => {
    const rule = set.rules[index]
    return isMatch && rule?.mode === 'enforcing' && !rule.rule.asksSize
  })
  if (enforcing.length === 0) return []
  const empty = openAnswer(judged, each, { ...answer, said: [] })
  const trivial = await runInTurns(evaluate(empty), judged.asker)
  const isTrivial = new Set(trivial.filter(({ isMatch }) => isMatch).map(({ index }) => index))
  return enforcing.filter(({ index }) => !isTrivial.has(index))
}

/** Evaluates the rules that read scores, and those in plain language. */
async function judgeByModels(judged: Judged, each: HistorySet, sent: readonly EarlierAnswer[]) {
  const { set } = each
  if (set.categories.size === 0 && !set.needsJudge) return
  await Promise.all(
    judged.answers.map(async (answer, number) => {
      const scores = await judged.moderated.scoresOf(sent[number] ?? answer)
      const matched = { judged, each, answer }
      requireAllowed(judged, each, await judgeByScores(matched, scores), number)
      const content = contentOfHistory(sent[number] ?? answer)
      requireAllowed(judged, each, await askJudge(matched, scores, content), number)
    }),
  )
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

async function askJudge(
  { judged, each, answer }: Matched,
  scores: CategoryScores,
  content: ReturnType<typeof contentOfHistory>,
): Promise<readonly RuleOutcome[]> {
  const { callJudge, asker } = judged
  const { set } = each
  if (!callJudge || !set.needsJudge || content.text === '') return []
  const open = openAnswer(judged, each, answer)
  const gates = await runInTurns(open.gates(scores), asker)
  const indexes = gates
    .filter(({ index, isMatch }) => {
      const rule = set.rules[index]
      return isMatch && rule?.mode === 'enforcing' && !rule.rule.asksSize
    })
    .map(({ index }) => index)
  const direction = each.direction
  const asked = { set, indexes, contents: [{ ...content, direction }] }
  return judgeRules(callJudge, asked, asker.signal)
}

/** A rule that matches decides, also where another could not be evaluated. */
function requireAllowed(
  judged: Judged,
  { set }: HistorySet,
  outcomes: readonly RuleOutcome[],
  number: number,
) {
  const first = noteMatches(judged.findings, outcomes, set, 'history')
  if (first) throw blocked(judged, first, number)
  const unscored = findUnscored(outcomes, set)
  if (unscored) throw ruleUnscored(unscored)
}
