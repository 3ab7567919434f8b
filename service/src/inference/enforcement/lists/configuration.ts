import type { RequestTexts } from '#formats/texts/request-texts.ts'
import type { EndingTerms } from '#inference/configured/configured-call.ts'
import type { Check, Checked, Ending } from '#inference/enforcement/check.ts'
import type { Findings } from '#inference/enforcement/findings.ts'
import { holdAtLeast } from '#inference/enforcement/guard/hold-back.ts'
import { joinAnswer } from '#inference/enforcement/plain-language/judge-texts.ts'
import {
  answerUnconfigured,
  answerUnjudged,
  requestUnconfigured,
} from '#inference/enforcement/refusals.ts'
import type { Blocked } from '#inference/enforcement/replacement/replacement.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import { textOf } from '#text/passage.ts'

/**
 * The configuration of the organization, which decides about the terms and categories that were found. If it refuses, the call
 * is refused at once. Every other action waits, because a later check might still find an always-blocked category.
 */
export const configuration: Check = {
  name: 'configuration',
  beforeHold: async (checked) => refuse(checked, checked.texts),
  afterHold: async (checked, sent) => refuse(checked, sent),
  addEndings: (rules, { findings }) => addTerms(rules, findings.configured?.endingTerms ?? null),
}

/** Actions of the configuration other than to refuse or allow: escalate, rewrite and summary. */
export const softerDecisions: Check = {
  name: 'softer decisions of the configuration',
  async afterHold(checked, sent) {
    const { configured } = checked.findings
    const isAllowed = !configured || configured.decide().effectiveDecision === 'allow'
    return isAllowed ? null : block(checked, sent)
  },
}

function refuse(checked: Checked, texts: RequestTexts): ApiError | null {
  const { configured } = checked.findings
  return configured?.decide().effectiveDecision === 'refuse' ? block(checked, texts) : null
}

function block({ findings }: Checked, { lastMessage }: RequestTexts): ApiError | null {
  const { configured } = findings
  if (!configured) return null
  const error = requestUnconfigured(findings, configured)
  noteReplaceable(findings, 'request', lastMessage.map(textOf))
  return error
}

/** Notes that these texts are to be replaced, if the configuration blocked them and wants a replacement. */
export function noteReplaceable(
  findings: Findings,
  direction: Blocked['direction'],
  texts: readonly string[],
) {
  const { configured, blockedBy } = findings
  if (!configured || !blockedBy?.isConfiguration) return
  const { effectiveDecision: action, triggeredCategories, terms } = configured.decide()
  if (action !== 'rewrite' && action !== 'summary') return
  findings.replaceable = {
    action,
    direction,
    text: joinAnswer(texts),
    categories: triggeredCategories,
    terms: terms.denylist,
  }
}

/** Adds the ending for an answer in which a term of the denylist begins. */
export function addTerms(
  rules: AnswerRules<Ending>,
  terms: EndingTerms | null,
): AnswerRules<Ending> {
  if (!terms) return rules
  return {
    ...rules,
    rules: [...rules.rules, termEnding],
    scanTerms: terms.scan,
    hold: holdAtLeast(rules.hold, terms.longest - 1),
  }
}

const termEnding: Ending = {
  isEnforcing: true,
  isError: false,
  formula: { kind: 'term' },
  toError: ({ findings }) =>
    findings.configured
      ? answerUnconfigured(findings, findings.configured)
      : answerUnjudged(undefined),
}
