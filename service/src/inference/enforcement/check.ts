import type { RequestTexts } from '#formats/texts/request-texts.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { AnswerEnding, AnswerRules } from '#policies/rules/answer-rules.ts'
import type { CallFacts } from '#policies/rules/facts.ts'
import type { OpenTexts, RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'
import type { Asker } from '#text/steps.ts'

import type { Findings } from './findings.ts'
import type { CallGuardrails } from './guardrails/call-guardrails.ts'
import type { SentRequest } from './guardrails/check-request.ts'
import type { CheckedHistory } from './history/check-history.ts'
import type { ModeratedCall } from './moderation/moderate-call.ts'
import type { CallJudge } from './plain-language/ask-judge.ts'

/** What a call can be refused for, or its answer ended. `checks.ts` lists all of them. */
export type Check = {
  readonly name: string
  /** Finds what the audit event reports, also of a request that an earlier check has refused. */
  find?(checked: Checked): Promise<void>
  /** Before credits are held, so nothing outside of this process is asked. Returns why the request is refused. */
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
  /** The texts of the request as it came. */
  readonly texts: RequestTexts
  /** The same, prepared for the rules. */
  readonly open: OpenTexts
  readonly moderated: ModeratedCall
  /** Null where no judge is configured; then no enforcing rule needs one. */
  readonly callJudge: CallJudge | null
  /** Null where the request has no earlier answers. */
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

/** What is known of an answer that something has ended. */
type EndedAnswer = {
  readonly findings: Findings
  readonly facts: CallFacts
  /** What ended it could not be evaluated. */
  readonly isError: boolean
  scoreOf(rule: SetRule): number
}
