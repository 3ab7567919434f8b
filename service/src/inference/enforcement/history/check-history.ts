import type { Json } from '#formats/answer.ts'
import type { EarlierAnswer } from '#formats/texts/request-texts.ts'
import type { ConfiguredCall } from '#inference/configured/configured-call.ts'
import type { Findings } from '#inference/enforcement/findings.ts'
import { findUnscored, noteMatches } from '#inference/enforcement/note-matches.ts'
import {
  type AskedRule,
  type CallJudge,
  judgeRules,
} from '#inference/enforcement/plain-language/ask-judge.ts'
import { contentOfHistory } from '#inference/enforcement/plain-language/judge-texts.ts'
import {
  type Decider,
  historyBlocked,
  historyUnconfigured,
  ruleUnscored,
} from '#inference/enforcement/refusals.ts'
import type { JudgedContent } from '#moderation/judge/judge.ts'
import type { ApiError } from '#platform/api-error.ts'
import { type Asker, runInTurns } from '#platform/steps/steps.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import type { OpenTexts, RuleOutcome, RuleSet } from '#policies/rules/rule-set.ts'
import type { ScoreMap } from '#policies/rules/score.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'

import { noteInHistory, placeOf } from './history-texts.ts'
import type { ModeratedHistory } from './moderate-history.ts'

type Checked = {
  /** `answer`: the rules for answers apply. `both`: those for requests, too. `skip`: only the always-blocked categories count. */
  mode: ConfiguredCall['historyMode']
  findings: Findings
  answers: readonly EarlierAnswer[]
  /** The rules for answers, and those for requests. */
  answered: RuleSet
  asked: RuleSet
  /** Whether personal data is put back into answers. */
  isRestored: boolean
  /** The facts of the request. */
  facts: CallFacts
  body: Json
  moderated: ModeratedHistory
  callJudge: CallJudge | null
  asker: Asker
}

/**
 * Checks earlier answers, which the caller claims were given. Each gets the verdict that it would get as an answer to the
 * messages before it.
 */
export type CheckedHistory = {
  /** Checks what this process can check on its own; returns why the request is refused. */
  beforeHold(): Promise<ApiError | null>
  /**
   * Asks scorers and the judge; returns why the request is refused. `sent` are the answers as scorers and the judge may see
   * them.
   */
  afterHold(sent: readonly EarlierAnswer[]): Promise<ApiError | null>
}

export function checkHistory(checked: Checked): CheckedHistory {
  const { answers, moderated, mode, body } = checked
  const place = (number: number) => placeOf(body, number)
  return {
    async beforeHold() {
      const found = mode === 'skip' ? null : await checkExactly(checked)
      return found ?? (await moderated.checkLocally(answers, place))
    },
    async afterHold(sent) {
      const refusal = await moderated.checkRemotely(sent, place)
      if (refusal || mode === 'skip') return refusal
      for (const set of setsOf(checked)) {
        const byModels = await checkByModels(checked, set, sent)
        if (byModels) return byModels
      }
      return null
    },
  }
}

type HistorySet = { set: RuleSet; direction: CallFacts['direction'] }

/** Rules for requests apply only in the mode `both`: the author of a rule for requests only has allowed answers to say it. */
function setsOf({ answered, asked, mode }: Checked): HistorySet[] {
  const sets: HistorySet[] = [{ set: answered, direction: 'response' }]
  if (mode === 'both') sets.push({ set: asked, direction: 'request' })
  return sets.filter(({ set }) => set.rules.some((rule) => rule.mode === 'enforcing'))
}

async function checkExactly(checked: Checked): Promise<ApiError | null> {
  const { answers, asker, findings, body } = checked
  const { configured } = findings
  const sets = setsOf(checked)
  for (const [number, answer] of answers.entries()) {
    for (const each of sets) {
      const open = openAnswer(checked, each, answer)
      const outcomes = await runInTurns(open.exact(), asker)
      const matching = await withoutTrivial(outcomes, { checked, each, answer })
      const decider = noteMatches(findings, matching, 'history')
      if (decider) return blocked(checked, decider, [number])
    }
    const isDenied = configured && (await runInTurns(configured.readHistory(answer.said), asker))
    if (!isDenied) continue
    noteInHistory(findings, answer)
    return historyUnconfigured(findings, configured, placeOf(body, number))
  }
  return null
}

const openAnswer = ({ facts }: Checked, { set, direction }: HistorySet, answer: EarlierAnswer) =>
  set.openTexts({ ...facts, direction, lastMessage: answer.question }, answer.said)

/** The error names the message only if there is one: the judge does not say in which of several answers it found a match. */
function blocked(
  { findings, body, answers }: Checked,
  decider: Decider,
  numbers: readonly number[],
) {
  const [only, ...others] = numbers
  for (const number of numbers) noteInHistory(findings, answers[number])
  const place = placeOf(body, only !== undefined && others.length === 0 ? only : null)
  return historyBlocked(findings, decider, place)
}

/** Restored values were not in an answer when it was checked, so rules about entities do not apply to them. */
const applies = ({ isRestored }: Checked, rule: SetRule): boolean =>
  rule.mode === 'enforcing' && !rule.rule.asksSize && !(isRestored && rule.rule.entities.size > 0)

type Matched = { checked: Checked; each: HistorySet; answer: EarlierAnswer }

/**
 * The enforcing rules that match what an earlier answer says. Rules that also match an empty answer or compare a size are left
 * out, because clients shorten the history that they send back. So are monitoring rules, whose matches would count again with
 * every turn.
 */
async function withoutTrivial(
  outcomes: readonly RuleOutcome[],
  { checked, each, answer }: Matched,
  evaluate = (open: OpenTexts) => open.exact(),
): Promise<readonly RuleOutcome[]> {
  const enforcing = outcomes.filter(({ rule, isMatch }) => isMatch && applies(checked, rule))
  if (enforcing.length === 0) return []
  const empty = openAnswer(checked, each, { ...answer, said: [] })
  const trivial = await runInTurns(evaluate(empty), checked.asker)
  const isTrivial = new Set(trivial.filter(({ isMatch }) => isMatch).map(({ rule }) => rule))
  return enforcing.filter(({ rule }) => !isTrivial.has(rule))
}

/**
 * Evaluates the rules that read scores, answer by answer, and then those in plain language. The judge is asked once about all
 * answers to which the same rules apply: it reads a long text in pieces, and knows the earlier pieces from the turn before.
 */
async function checkByModels(
  checked: Checked,
  each: HistorySet,
  sent: readonly EarlierAnswer[],
): Promise<ApiError | null> {
  const { set } = each
  if (set.categories.size === 0 && !set.needsJudge) return null
  const questions = new Map<string, { rules: readonly AskedRule[]; numbers: number[] }>()
  for (const [number, answer] of checked.answers.entries()) {
    const scores = await checked.moderated.scoresOf(sent[number] ?? answer)
    const matched = { checked, each, answer }
    const refusal = refuse(checked, await evaluateScored(matched, scores), [number])
    if (refusal) return refusal
    const rules = await findAsked(matched, scores)
    const key = rules.map(({ index }) => index).join()
    const question = questions.get(key) ?? { rules, numbers: [] }
    question.numbers.push(number)
    if (rules.length > 0) questions.set(key, question)
  }
  for (const { rules, numbers } of questions.values()) {
    const said = numbers.flatMap((number) => sent[number] ?? checked.answers[number] ?? [])
    const outcomes = await askJudge(checked, { each, rules, content: contentOfHistory(said) })
    const refusal = refuse(checked, outcomes, numbers)
    if (refusal) return refusal
  }
  return null
}

const noScores = (categories: ScoreMap) =>
  new Map([...categories.keys()].map((category) => [category, 0]))

async function evaluateScored(matched: Matched, scores: ScoreMap) {
  const { checked, each, answer } = matched
  if (each.set.categories.size === 0) return []
  const open = openAnswer(checked, each, answer)
  const outcomes = await runInTurns(open.scored(scores), checked.asker)
  const zero = noScores(scores)
  const matching = await withoutTrivial(outcomes, matched, (empty) => empty.scored(zero))
  return [...matching.filter(({ isUnscored }) => !isUnscored), ...unscoredOf(outcomes)]
}

const unscoredOf = (outcomes: readonly RuleOutcome[]) =>
  outcomes.filter(({ isUnscored }) => isUnscored)

/** The plain-language rules about which the judge must be asked. */
async function findAsked(
  { checked, each, answer }: Matched,
  scores: ScoreMap,
): Promise<readonly AskedRule[]> {
  const { set } = each
  if (!checked.callJudge || !set.needsJudge) return []
  const open = openAnswer(checked, each, answer)
  const gates = await runInTurns(open.gates(scores), checked.asker)
  return gates.filter(({ rule, isMatch }) => isMatch && applies(checked, rule))
}

type Question = { each: HistorySet; rules: readonly AskedRule[]; content: JudgedContent }

async function askJudge(
  { callJudge, asker }: Checked,
  { each: { direction }, rules, content }: Question,
): Promise<readonly RuleOutcome[]> {
  if (!callJudge || content.text === '') return []
  const asked = { rules, contents: [{ ...content, direction }] }
  return judgeRules(callJudge, asked, asker.signal)
}

/** A rule that matches decides, even if another one could not be evaluated. */
function refuse(
  checked: Checked,
  outcomes: readonly RuleOutcome[],
  numbers: readonly number[],
): ApiError | null {
  const first = noteMatches(checked.findings, outcomes, 'history')
  if (first) return blocked(checked, first, numbers)
  const unscored = findUnscored(outcomes)
  return unscored ? ruleUnscored(unscored) : null
}
