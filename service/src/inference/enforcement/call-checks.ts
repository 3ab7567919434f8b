import type { Piece } from '#formats/answer.ts'
import type { ModelRequest } from '#inference/model-request.ts'
import type { QuestionsOf } from '#limits/limit-questions.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'

import { checkKnown } from './check-known.ts'
import type { Checked } from './check.ts'
import { checks } from './checks.ts'
import type { Findings, CheckedCall, CheckedRequest } from './findings.ts'
import { type AnswerGuarding, type GuardDeps, openGuard } from './guard/open-guard.ts'
import { type EstimateTokens, openRedaction, redactCall } from './redaction/redact-call.ts'
import type { Replacement } from './replacement/replacement.ts'
import { answerWith } from './replacement/sent-blocks.ts'
import { RequestToSend } from './request-to-send.ts'

/** The checks of one call. */
export type CallChecks<Request extends CheckedRequest = ModelRequest> = {
  readonly findings: Findings
  /** The request that may be sent: another one where something was redacted, or rewritten by a guardrail. */
  readonly request: Request
  /** By how many tokens it may still become longer, which credits are held for. */
  readonly growthMost: number
  /** Makes the checks that cost nothing, and redacts the request. Throws where it is refused. */
  beforeHold(): Promise<void>
  /**
   * Waits for the verdicts that cost something: those of remote scorers and the judge. Throws if the request is refused and
   * nothing replaces it.
   */
  afterHold(): Promise<void>
  /**
   * Passes on the model's answer as far as it is cleared; throws if the rest may not leave. If the request was replaced, the
   * replacement is the answer and no model is called.
   */
  guard(callModel: () => AsyncIterable<Piece>): AsyncIterable<Piece> | Iterable<Piece>
}

export type CallToCheck<Request extends CheckedRequest> = {
  call: CheckedCall
  request: Request
  checked: Checked
  /** The rules that apply: those for the request, and those for its answer or for earlier answers. */
  sets: readonly RuleSet[]
  /** The rules for the answer; null for a count of tokens, which no model answers. */
  answerSet: RuleSet | null
  questions: QuestionsOf
}

type Deps = GuardDeps & { estimate: EstimateTokens }

export function createCallChecks<Request extends CheckedRequest>(
  deps: Deps,
  { call, request, checked, sets, answerSet, questions }: CallToCheck<Request>,
): CallChecks<Request> {
  const { findings, asker } = checked
  const { estimate } = deps
  const mayGrow = checked.guardrails?.areEnforcing ?? false
  const toSend = new RequestToSend(request, checked.texts, { call, asker, estimate, mayGrow })
  let answer: AnswerGuarding | null = null
  let replacement: Replacement | null = null

  return {
    findings,
    get request() {
      return toSend.request
    },
    get growthMost() {
      return toSend.growthMost
    },

    async beforeHold() {
      const refusal = await findRefusal(checked)
      const redaction = refusal ? null : openRedaction(findings)
      // What leaves this process is redacted. The checks in it see the original texts, so that rules can count what was said.
      if (redaction) {
        const redacting = { call, request, findings, texts: checked.texts, asker }
        const redacted = await redactCall(redaction, redacting, estimate)
        toSend.request = redacted.request
        toSend.texts = redacted.texts
      }
      if (answerSet) {
        const { isStreamed } = request
        const guarded = { ...checked, call, set: answerSet, texts: toSend.texts, isStreamed }
        answer = await openGuard(deps, { ...guarded, redaction, questions })
      }
      call.addHeaders({ 'x-policy-holdback': String(answer?.hold ?? 'none') })
      if (refusal) throw refusal
    },

    async afterHold() {
      if (!answer) return checkKnown({ call, checked, sets }, toSend)
      try {
        await requireQuestions(questions, sets)
        for (const check of checks) {
          const refusal = await check.afterHold?.(checked, toSend.texts, toSend)
          if (refusal) throw refusal
        }
      } catch (error) {
        replacement = await answer.replace(error)
        if (!replacement) throw error
      }
    },

    guard(callModel) {
      if (replacement) return [answerWith(replacement.text)]
      if (!answer) throw new Error('The request has not been checked.')
      return answer.guard(callModel(), toSend.texts.prefill)
    },
  }
}

/** Returns the first refusal. Later checks still look for what the event reports. */
async function findRefusal(checked: Checked): Promise<ApiError | null> {
  let refusal: ApiError | null = null
  for (const check of checks) {
    await check.find?.(checked)
    refusal ??= (await check.beforeHold?.(checked)) ?? null
  }
  return refusal
}

/**
 * Throws if the organization has already asked scorers or the judge too many questions. The questions about an answer are only
 * counted, so that they never end it.
 */
async function requireQuestions(questions: QuestionsOf, sets: readonly RuleSet[]) {
  await questions.scorer.check()
  if (sets.some(({ needsJudge }) => needsJudge)) await questions.judge.check()
}
