import type { Piece } from '#formats/answer.ts'
import { readTextsInSteps } from '#formats/texts/request-texts.ts'
import type { ModelRequest } from '#inference/model-request.ts'
import type { QuestionsOf } from '#limits/limit-questions.ts'
import { GuardrailFailure } from '#moderation/guardrails/guardrail-failure.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { RuleSet } from '#policies/rules/rule-set.ts'
import { runInTurns } from '#text/steps.ts'

import { checkKnown } from './check-known.ts'
import type { Checked } from './check.ts'
import { checks } from './checks.ts'
import type { Findings, CheckedCall, CheckedRequest } from './findings.ts'
import { type AnswerGuarding, type GuardDeps, openGuard } from './guard/open-guard.ts'
import type { SentRequest } from './guardrails/check-request.ts'
import {
  type EstimateTokens,
  openRedaction,
  redactCall,
  withBody,
} from './redaction/redact-call.ts'
import type { Replacement } from './replacement/replacement.ts'
import { answerWith } from './replacement/sent-blocks.ts'

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
   * Waits for verdicts that cost something, of remote scorers and the judge. Throws where the request is refused and nothing
   * replaces it.
   */
  afterHold(): Promise<void>
  /**
   * The answer of the model as far as it is cleared; throws where it may not go on. Where the request was replaced, the replacement is
   * the answer, and no model is called.
   */
  guard(callModel: () => AsyncIterable<Piece>): AsyncIterable<Piece> | Iterable<Piece>
}

export type CallToCheck<Request extends CheckedRequest> = {
  call: CheckedCall
  request: Request
  checked: Checked
  /** The rules that are applied: those of the request, and those of its answer or of earlier ones. */
  sets: readonly RuleSet[]
  /** Null where no model answers: a count of tokens. */
  answerSet: RuleSet | null
  questions: QuestionsOf
}

type Deps = GuardDeps & { estimate: EstimateTokens }

export function createCallChecks<Request extends CheckedRequest>(
  deps: Deps,
  { call, request, checked, sets, answerSet, questions }: CallToCheck<Request>,
): CallChecks<Request> {
  const { findings, asker } = checked
  let [toSend, sentTexts] = [request, checked.texts]
  let answer: AnswerGuarding | null = null
  let replacement: Replacement | null = null
  let growthMost = checked.guardrails?.areEnforcing ? growthOf(request) : 0

  const sending: SentRequest = {
    get body() {
      return toSend.body
    },
    get texts() {
      return sentTexts
    },
    async replaceWith(body) {
      const longer = await rewrite({ call, request: toSend, body }, growthMost, deps)
      growthMost -= longer.growth
      toSend = longer.request
      sentTexts = await runInTurns(readTextsInSteps(toSend.turn), asker)
    },
  }

  return {
    findings,
    get request() {
      return toSend
    },
    get growthMost() {
      return growthMost
    },

    async beforeHold() {
      const refusal = await findRefusal(checked)
      const redaction = refusal ? null : openRedaction(findings)
      // What leaves this process is redacted; what is checked in it is not, so that rules can count what was said.
      if (redaction) {
        const redacting = { call, request, findings, texts: checked.texts, asker }
        const redacted = await redactCall(redaction, redacting, deps.estimate)
        toSend = redacted.request
        sentTexts = redacted.texts
      }
      if (answerSet) {
        const { isStreamed } = request
        const guarded = { ...checked, call, set: answerSet, texts: sentTexts, isStreamed }
        answer = await openGuard(deps, { ...guarded, redaction, questions })
      }
      call.addHeaders({ 'x-policy-holdback': String(answer?.hold ?? 'none') })
      if (refusal) throw refusal
    },

    async afterHold() {
      if (!answer) return checkKnown({ call, checked, sets }, sending)
      try {
        await requireQuestions(questions, sets)
        for (const check of checks) {
          const refusal = await check.afterHold?.(checked, sentTexts, sending)
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
      return answer.guard(callModel(), sentTexts.prefill)
    },
  }
}

/** The request with another body, and by how much it is longer; throws where credits would not suffice for it. */
async function rewrite<Request extends CheckedRequest>(
  changed: Parameters<typeof withBody<Request>>[0],
  growthMost: number,
  { estimate }: Pick<Deps, 'estimate'>,
) {
  const request = await withBody(changed, estimate)
  const growth = request.estimate.tokens - changed.request.estimate.tokens
  if (growth > growthMost) throw tooLong()
  return { request, growth }
}

/** Placeholders are a little longer than what they stand for. */
const growthOf = ({ estimate }: CheckedRequest) => 256 + Math.ceil(estimate.tokens / 10)

const tooLong = () =>
  new GuardrailFailure(
    'unwritable',
    'The request would be longer, as the guardrail rewrites it, than credits are held for.',
  )

/** The first refusal counts. Later checks still find what the event reports. */
async function findRefusal(checked: Checked): Promise<ApiError | null> {
  let refusal: ApiError | null = null
  for (const check of checks) {
    await check.find?.(checked)
    refusal ??= (await check.beforeHold?.(checked)) ?? null
  }
  return refusal
}

/** Throws where the organization has asked too much of scorers or the judge. The answer is not ended for its questions. */
async function requireQuestions(questions: QuestionsOf, sets: readonly RuleSet[]) {
  await questions.scorer.check()
  if (sets.some(({ needsJudge }) => needsJudge)) await questions.judge.check()
}
