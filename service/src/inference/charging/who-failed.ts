import { TotalTimeout } from '#inference/upstreams/upstream-failure.ts'
import {
  GuardrailFailure,
  type GuardrailProblem,
} from '#moderation/guardrails/guardrail-failure.ts'
import { ModelFailure } from '#moderation/model-failure.ts'
import { BeyondLimits } from '#policies/guard/guard-end.ts'
import { SearchTooSlow } from '#policies/rules/search-in-threads.ts'

/** The problems of guardrails that callers may bring about. */
const guardrailProblems: ReadonlySet<GuardrailProblem> = new Set<GuardrailProblem>([
  'malformed', // it has answered, and what it was asked about may be why that is no decision
  'too_large',
  'unwritable',
])

/**
 * Whether callers can make an answer end with this failure, by what they send, what they ask for, or how much of it. If they
 * can, what was generated is charged; otherwise the operator would pay for answers of any length. All other failures are the
 * gateway's or a provider's.
 */
export function isByCaller(failure: unknown): boolean {
  if (failure instanceof ModelFailure) return failure.isByCaller
  if (failure instanceof GuardrailFailure) {
    return failure.isOfOrganization || guardrailProblems.has(failure.problem)
  }
  // An upstream that stalls is given up long before the time for a whole answer has passed.
  if (failure instanceof BeyondLimits || failure instanceof TotalTimeout) return true
  if (failure instanceof SearchTooSlow) return true
  return failure instanceof Error && isByCaller(failure.cause)
}
