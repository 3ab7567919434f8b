import type { FoundIn, MatchReport } from '#audit/policy-report.ts'
import type { RuleOutcome, RuleSet } from '#policies/rules/rule-set.ts'
import type { SetRule } from '#policies/rules/set-rule.ts'

import type { Findings } from './findings.ts'
import type { Decider } from './refusals.ts'

/** Adds to the findings which rules matched and which could not be evaluated; returns the first enforcing rule that matched. */
export function noteMatches(
  { matches, unevaluated, features }: Findings,
  outcomes: readonly RuleOutcome[],
  direction: MatchReport['direction'],
): Decider | null {
  let first: Decider | null = null
  for (const { rule, score, isMatch, isError, isUnscored } of outcomes) {
    if (isUnscored && rule.mode === 'enforcing') continue
    // An enforcing rule that cannot be evaluated counts as a match.
    if (isError && !isMatch && !unevaluated.includes(rule.policyId)) unevaluated.push(rule.policyId)
    const { policyId: policy_id, version, mode, threshold } = rule
    if (!isMatch) {
      if (score > 0) features?.scores.push({ policy_id, version, direction, score })
      continue
    }
    matches.push({ policy_id, version, direction, mode, score, threshold })
    if (mode === 'enforcing') first ??= { rule, isError }
  }
  return first
}

/** Notes where something was found, once per place. */
export function noteFound({ foundIn }: Findings, found: FoundIn) {
  const isKnown = foundIn.some(
    ({ direction, part, message }) =>
      direction === found.direction && part === found.part && message === found.message,
  )
  if (!isKnown) foundIn.push(found)
}

/** The first enforcing rule that has no verdict because a score that it reads is missing. */
export const findUnscored = (outcomes: readonly RuleOutcome[]): SetRule | undefined =>
  outcomes.find(({ rule, isUnscored }) => isUnscored && rule.mode === 'enforcing')?.rule

/** Why scores are missing; undefined if the reason is unknown. */
export const whyUnscored = (outcomes: readonly RuleOutcome[]): unknown =>
  outcomes.find(({ failure }) => failure !== undefined)?.failure

/** Notes that the monitoring rules of the set could not be evaluated, which is no reason to refuse a call. */
export function noteUnevaluated(findings: Findings, { rules }: RuleSet) {
  noteUnjudged(
    findings,
    rules.filter(({ mode }) => mode === 'monitoring'),
  )
}

/** Notes rules of which it is unknown whether they match. */
export function noteUnjudged(
  { unevaluated }: Findings,
  rules: readonly { readonly policyId: string }[],
) {
  for (const { policyId } of rules) {
    if (!unevaluated.includes(policyId)) unevaluated.push(policyId)
  }
}
