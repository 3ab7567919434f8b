import { TotalTimeout } from '#inference/upstreams/upstream-failure.ts'
import {
  GuardrailFailure,
  type GuardrailProblem,
} from '#moderation/guardrails/guardrail-failure.ts'
import { JudgeFailure, type JudgeFailureKind } from '#moderation/judge/judge.ts'
import { ScorerFailure, type ScorerProblem } from '#moderation/scorer.ts'
import { BeyondLimits } from '#policies/guard/guard-end.ts'
import { SearchTooSlow } from '#policies/rules/search-in-threads.ts'

/** `either`: the failure itself says whether the caller may have caused it, by what was sent or by how much. */
type Blamed = 'caller' | 'others' | 'either'

const judgeFailures = {
  no_verdict: 'caller', // the judge answered, and the text may be why its answer is no verdict
  too_long: 'caller',
  late: 'either',
  overloaded: 'either', // because of the organization's own questions, or of all organizations' together
  misconfigured: 'others',
  unavailable: 'others',
  throttled: 'others',
} as const satisfies Record<JudgeFailureKind, Blamed>

const scorerProblems = {
  malformed: 'caller',
  rejected: 'caller',
  too_long: 'caller',
  busy: 'either',
  error: 'either',
  overloaded: 'either',
  timeout: 'either',
  misconfigured: 'others',
  paused: 'others',
  unreachable: 'others',
} as const satisfies Record<ScorerProblem, Blamed>

const guardrailProblems = {
  malformed: 'caller', // it has answered, and what it was asked about may be why that is no decision
  too_large: 'caller',
  unwritable: 'caller',
  status: 'others',
  misconfigured: 'others',
  unreachable: 'others',
  late: 'others',
  paused: 'others',
  overloaded: 'others',
} as const satisfies Record<GuardrailProblem, Blamed>

/**
 * Whether callers can make an answer end with this failure, by what they send, what they ask for, or how much of it. If they
 * can, what was generated is charged; otherwise the operator would pay for answers of any length. All other failures are the
 * gateway's or a provider's.
 */
export function isByCaller(failure: unknown): boolean {
  if (failure instanceof JudgeFailure) return isBlamed(judgeFailures[failure.kind], failure)
  if (failure instanceof ScorerFailure) return isBlamed(scorerProblems[failure.problem], failure)
  if (failure instanceof GuardrailFailure)
    return failure.isOfOrganization || guardrailProblems[failure.problem] === 'caller'
  // An upstream that stands still is given up long before the time of a whole answer is over.
  if (failure instanceof BeyondLimits || failure instanceof TotalTimeout) return true
  if (failure instanceof SearchTooSlow) return true
  return failure instanceof Error && isByCaller(failure.cause)
}

const isBlamed = (blamed: Blamed, { mayBeByCaller }: { mayBeByCaller: boolean }): boolean =>
  blamed === 'caller' || (blamed === 'either' && mayBeByCaller)
