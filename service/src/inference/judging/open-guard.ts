import { effectiveAction } from '@gatehouse/contract/policy-gateway/config'

import type { Piece } from '#formats/answer.ts'
import type { UpstreamFormats } from '#formats/format.ts'
import type { RequestTexts } from '#formats/texts/request-texts.ts'
import type { CallRedaction } from '#inference/redacting/call-redaction.ts'
import type { Replace } from '#inference/replacing/replacement.ts'
import type { QuestionsOf } from '#limits/limit-questions.ts'
import { countedOnly } from '#moderation/scorer.ts'
import type { Clock } from '#platform/clock.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'
import { type Asker, runInTurns } from '#text/steps.ts'

import { addCategories, addTerms } from './add-categories.ts'
import { judgeErrorTexts } from './errors/judge-error-texts.ts'
import { guardByRules, type LogProblem } from './guard-by-rules.ts'
import { judgeAnswer, unjudgedAnswer } from './judge-answer.ts'
import type { ModeratedCall } from './moderate-call.ts'
import { replaceBlockedCall } from './replace-blocked-call.ts'
import type { CallJudge } from './verdicts/ask-judge.ts'
import type { Findings, JudgedCall, JudgedRequest, Judgement } from './verdicts/judgement.ts'

/** What the guards of all answers share. */
type GuardDeps = {
  formats: UpstreamFormats
  steadyNow: Clock
  replace: Replace
  logProblem: LogProblem
}

export type Guarded = {
  call: JudgedCall
  judgement: Judgement<JudgedRequest>
  set: RuleSet
  facts: CallFacts
  /** Of the request, as it is sent. */
  texts: RequestTexts
  moderated: ModeratedCall
  callJudge: CallJudge | null
  asker: Asker
  redaction: CallRedaction | null
  questions: QuestionsOf
}

/** Sets the guard of the answer; returns how much it holds back. */
export async function openGuard(
  { replace, ...deps }: GuardDeps,
  { call, judgement, set, moderated, questions, ...asked }: Guarded,
) {
  // A call that was admitted is not ended for what its answer makes others asked.
  const callJudge = asked.callJudge && {
    ...asked.callJudge,
    questions: countedOnly(questions.judge),
  }
  const facts = { ...asked.facts, direction: 'response' as const }
  const { blocking: categories } = moderated
  const { redaction, asker } = asked
  const hide = redaction && redaction.hide
  const own = await runInTurns(set.openAnswerInSteps(facts), asker)
  const rulesOf = ({ configured }: Findings) =>
    addTerms(
      addCategories(own, categories, set.rules.length),
      configured?.endingTerms ?? null,
      set.rules.length + categories.length,
    )
  const rules = rulesOf(judgement)
  const guard = (pieces: AsyncIterable<Piece>, findings: Findings, isApart = false) =>
    guardByRules(pieces, {
      ...deps,
      cancellation: call.cancellation,
      set,
      rules: isApart ? rulesOf(findings) : rules,
      facts,
      prefill: asked.texts.prefill,
      findings,
      owner: asker.owner,
      categories,
      scored: moderated.scoreAnswer(set, own.scores, hide, isApart ? findings : judgement),
      judged:
        callJudge && set.needsJudge
          ? judgeAnswer({ callJudge, set, rules: own, request: asked.texts, hide })
          : unjudgedAnswer,
    })
  if (mayReplace(judgement)) {
    const replacing = { replace, call, guard, hide, asker, questions: questions.rewriter }
    replaceBlockedCall(judgement, replacing)
  } else judgement.guard = (pieces) => guard(pieces, judgement)
  judgeErrorTexts(judgement, {
    guard: (pieces, findings) => guard(pieces, findings, true),
    redaction,
    asker,
  })
  if (!redaction) return rules.hold
  const { guard: guardOriginal } = judgement
  judgement.guard = (pieces) => redaction.redactAnswer(guardOriginal(pieces), asker)
  // What the guard has let go is held until it is final.
  return typeof rules.hold === 'number' ? rules.hold + redaction.hold : rules.hold
}

/** Whether the configuration of the organization wants other words instead of a refusal. */
function mayReplace({ configured }: Findings): boolean {
  const action = configured?.isEnforced && effectiveAction(configured.gateway.config)
  return action === 'rewrite' || action === 'summary'
}
