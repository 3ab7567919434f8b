import { effectiveAction } from '@gatehouse/contract/policy-gateway/config'

import type { Piece } from '#formats/answer.ts'
import type { UpstreamFormats } from '#formats/format.ts'
import type { RequestTexts } from '#formats/texts/request-texts.ts'
import type { Ending } from '#inference/enforcement/check.ts'
import { checks } from '#inference/enforcement/checks.ts'
import { checkErrorTexts } from '#inference/enforcement/errors/check-error-texts.ts'
import type { Findings, CheckedCall } from '#inference/enforcement/findings.ts'
import type { CallGuardrails } from '#inference/enforcement/guardrails/call-guardrails.ts'
import type { ModeratedCall } from '#inference/enforcement/moderation/moderate-call.ts'
import type { CallJudge } from '#inference/enforcement/plain-language/ask-judge.ts'
import { judgeAnswer, unjudgedAnswer } from '#inference/enforcement/plain-language/judge-answer.ts'
import type { CallRedaction } from '#inference/enforcement/redaction/call-redaction.ts'
import { openReplacement } from '#inference/enforcement/replacement/open-replacement.ts'
import type { Replace, Replacement } from '#inference/enforcement/replacement/replacement.ts'
import { toEndings } from '#inference/enforcement/rules/rule-endings.ts'
import type { QuestionsOf } from '#limits/limit-questions.ts'
import { countedOnly } from '#moderation/scorer.ts'
import type { Clock } from '#platform/clock.ts'
import { type Asker, runInTurns } from '#platform/steps/steps.ts'
import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'

import { guardAnswer, type LogProblem, scorersOf } from './guard-answer.ts'
import { holdOfAnswer } from './hold-back.ts'

/** What the guards of all answers share. */
export type GuardDeps = {
  formats: UpstreamFormats
  steadyNow: Clock
  replace: Replace
  logProblem: LogProblem
}

export type Guarded = {
  call: CheckedCall
  findings: Findings
  /** The rules for answers. */
  set: RuleSet
  facts: CallFacts
  /** Of the request, as it is sent. */
  texts: RequestTexts
  isStreamed: boolean
  moderated: ModeratedCall
  callJudge: CallJudge | null
  asker: Asker
  redaction: CallRedaction | null
  questions: QuestionsOf
  guardrails: CallGuardrails | null
}

/** What guards the answer of a call. */
export type AnswerGuarding = {
  /** How many characters it holds back at most. */
  readonly hold: AnswerRules['hold']
  /** The answer as far as it is cleared; throws where it may not go on. `prefill` is its beginning, as it was sent. */
  guard(pieces: AsyncIterable<Piece>, prefill: string): AsyncIterable<Piece>
  /** What stands for a request that ended with this error; null: nothing does. */
  replace(error: unknown): Promise<Replacement | null>
}

export async function openGuard(
  { replace, ...deps }: GuardDeps,
  { call, findings, set, moderated, questions, redaction, guardrails, ...asked }: Guarded,
): Promise<AnswerGuarding> {
  const { texts, isStreamed, asker } = asked
  const callJudge = withoutLimit(asked.callJudge, questions)
  const facts = { ...asked.facts, direction: 'response' as const }
  const hide = redaction && redaction.hide
  const own = toEndings(await runInTurns(set.openAnswerInSteps(facts), asker), set)
  const rulesFor = (answerFindings: Findings) =>
    addEndings(own, { findings: answerFindings, moderated })
  const rules = rulesFor(findings)

  /** Scores belong to one text: rules read the highest of all its windows. */
  const openScores = (noted: Findings) => ({
    scored: moderated.scoreAnswer(set, { atoms: own.scores, hide, findings: noted }),
    judged:
      callJudge && set.needsJudge
        ? judgeAnswer({ callJudge, set, rules: own, request: texts, hide })
        : unjudgedAnswer,
  })

  /** Guards a text by the rules for answers. What it finds goes to these findings. */
  const guardText = (pieces: AsyncIterable<Piece>, noted: Findings, isApart = false) =>
    guardAnswer(pieces, {
      ...deps,
      cancellation: call.cancellation,
      set,
      rules: isApart ? rulesFor(noted) : rules,
      facts,
      prefill: texts.prefill,
      findings: noted,
      owner: asker.owner,
      ...openScores(isApart ? noted : findings),
    })

  /** Guards a text that is no part of the model's answer. */
  const guardWords = (pieces: AsyncIterable<Piece>, noted: Findings, isApart = false) => {
    const cleared = guardText(pieces, noted, isApart)
    return guardrails?.guardWords(cleared, { noted, hide }) ?? cleared
  }

  const replacing = { replace, findings, isStreamed, call, guard: guardWords, hide, asker }
  const replacement = mayReplace(findings)
    ? openReplacement({ ...replacing, questions: questions.rewriter })
    : null
  return {
    hold: holdOfAnswer({
      hold: rules.hold,
      grids: scorersOf(openScores(findings)).map(({ grid }) => grid),
      rewriting: [redaction, guardrails],
    }),
    replace: async (error) => (await replacement?.replace(error)) ?? null,
    guard(pieces, prefill) {
      const guardApart = (words: AsyncIterable<Piece>, noted: Findings) =>
        guardWords(words, noted, true)
      const answer = checkErrorTexts(pieces, { findings, guard: guardApart, redaction, asker })
      const cleared = guardText(answer, findings)
      const replaced = replacement ? replacement.replaceBlocked(cleared) : cleared
      const redacted = redaction ? redaction.redactAnswer(replaced, asker) : replaced
      const interrupt = () => void endAtSource(pieces)
      const decided = guardrails?.guardAnswer(redacted, { prefill, interrupt }) ?? redacted
      return redaction ? redaction.restoreAnswer(decided) : decided
    },
  }
}

/** A call that was admitted is not ended for the questions that its answer raises. */
const withoutLimit = (callJudge: CallJudge | null, questions: QuestionsOf): CallJudge | null =>
  callJudge && { ...callJudge, questions: countedOnly(questions.judge) }

function addEndings(
  own: AnswerRules<Ending>,
  answer: { findings: Findings; moderated: ModeratedCall },
): AnswerRules<Ending> {
  let rules = own
  for (const check of checks) rules = check.addEndings?.(rules, answer) ?? rules
  return rules
}

/** What waits for more of the answer gets its end. */
const endAtSource = async (pieces: AsyncIterable<Piece>) =>
  pieces[Symbol.asyncIterator]()
    .return?.()
    .catch(() => undefined)

/** Whether the configuration of the organization wants a replacement instead of a refusal. */
function mayReplace({ configured }: Findings): boolean {
  const action = configured?.isEnforced && effectiveAction(configured.gateway.config)
  return action === 'rewrite' || action === 'summary'
}
