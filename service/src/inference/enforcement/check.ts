import type { RequestTexts } from '#formats/texts/request-texts.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { Asker } from '#platform/steps/steps.ts'
import type { AnswerEnding, AnswerRules } from '#policies/rules/answer-rules.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import type { OpenTexts, RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'

import type { Findings } from './findings.ts'
import type { CallGuardrails } from './guardrails/call-guardrails.ts'
import type { SentRequest } from './guardrails/check-request.ts'
import type { CheckedHistory } from './history/check-history.ts'
import type { ModeratedCall } from './moderation/moderate-call.ts'
import type { CallJudge } from './plain-language/ask-judge.ts'

/** A reason to refuse a call or to end its answer. `checks.ts` lists all checks. */
export type Check = {
  readonly name: string
  /** Looks for what the audit event reports, even if an earlier check has refused the request. */
  find?(checked: Checked): Promise<void>
  /** Runs before credits are held, so it asks nothing outside of this process. Returns why the request is refused. */
  beforeHold?(checked: Checked): Promise<ApiError | null>
  /**
   * After credits are held: may ask others outside of this process. `sent` are the texts that they may see, and `request` is what
   * the model gets.
   */
  afterHold?(checked: Checked, sent: RequestTexts, request: SentRequest): Promise<ApiError | null>
  /** Adds what ends an answer. Where two things end it at the same character, the one that was added first counts. */
  addEndings?(rules: AnswerRules<Ending>, answer: CheckedAnswer): AnswerRules<Ending>
}

/** What the checks of a request know of it. */
export type Checked = {
  readonly findings: Findings
  /** The rules for requests. */
  readonly set: RuleSet
  readonly facts: CallFacts
  /** The texts of the request as the caller sent it. */
  readonly texts: RequestTexts
  /** The same texts, prepared for the rules. */
  readonly open: OpenTexts
  readonly moderated: ModeratedCall
  /** Null if no judge is configured; then no enforcing rule needs one. */
  readonly callJudge: CallJudge | null
  /** Null if the request contains no earlier answers. */
  readonly history: CheckedHistory | null
  /** Null where none is asked about the call. */
  readonly guardrails: CallGuardrails | null
  readonly asker: Asker
}

/** What the checks of an answer know of it. */
type CheckedAnswer = {
  readonly findings: Findings
  readonly moderated: Pick<ModeratedCall, 'blocking'>
}

/** Something that ends an answer, and the error by which it does. */
export type Ending = AnswerEnding & { toError(ended: EndedAnswer): ApiError }

/** What is known of an answer that was ended. */
type EndedAnswer = {
  readonly findings: Findings
  readonly facts: CallFacts
  /** Whether the ending could not be evaluated and therefore counts as a match. */
  readonly isError: boolean
  scoreOf(rule: SetRule): number
}
