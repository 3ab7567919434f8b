import type { Check } from './check.ts'
import { guardrails } from './guardrails/guardrails.ts'
import { history } from './history/history.ts'
import { configuration, softerDecisions } from './lists/configuration.ts'
import { wordLists } from './lists/word-lists.ts'
import { moderation } from './moderation/moderation.ts'
import { plainLanguage } from './plain-language/plain-language.ts'
import { exactRules } from './rules/exact-rules.ts'
import { scoredRules } from './rules/scored-rules.ts'

/**
 * Every check of a call, in the order in which they refuse it (docs/specification/order-of-refusals.md). Redaction is not among
 * them: it changes a request and refuses none, between the stages before and after the hold.
 *
 * | check           | before the hold      | after the hold           | what ends an answer      |
 * | --------------- | -------------------- | ------------------------ | ------------------------ |
 * | exactRules      | rules of policies    |                          | every rule of a policy   |
 * | wordLists       | finds terms          |                          |                          |
 * | moderation      | the scorer in here   | remote scorers           | categories               |
 * | configuration   | refuses              | refuses                  | terms of the denylist    |
 * | scoredRules     |                      | rules that read scores   |                          |
 * | plainLanguage   |                      | the judge                |                          |
 * | history         | all of the above, of earlier answers in the request    |                          |
 * | softerDecisions |                      | rewrite, summary, escalate |                        |
 * | guardrails      |                      | webhooks                 | webhooks, last of all    |
 */
export const checks: readonly Check[] = [
  exactRules,
  wordLists,
  moderation,
  configuration,
  scoredRules,
  plainLanguage,
  history,
  softerDecisions,
  guardrails,
]
