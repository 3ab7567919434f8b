import { createBreaker } from '#platform/breaker.ts'
import type { Clock } from '#platform/clock.ts'

import { JudgeFailure, type JudgeFailureKind } from './judge.ts'

const failuresMax = 10
/** Short, because during the pause no call with a rule in plain language can be decided. */
const pauseMs = 2000

/** What a try says about the judge. `nothing`: we ended it, or it had too little time. */
export type TryOutcome = 'verdict' | 'nothing' | JudgeFailureKind

const signs = {
  verdict: 'alive',
  // A judge that answers is alive, whatever it says. Otherwise a text that makes it answer with nonsense would close it for all
  // organizations.
  no_verdict: 'alive',
  misconfigured: 'ill',
  unavailable: 'ill',
  throttled: 'ill',
  late: 'ill',
  nothing: 'none',
  overloaded: 'none',
  too_long: 'none',
} as const satisfies Record<TryOutcome, 'alive' | 'ill' | 'none'>

/** Tracks whether it makes sense to ask the judge at the moment. */
export function createJudgeHealth(now: Clock) {
  const breaker = createBreaker({ now, failuresMax, pauseMs })
  let isRefused = false
  return {
    isPausing: breaker.isPausing,
    /** Throws while the judge is not asked. */
    check() {
      if (breaker.mayTry()) return
      // A refusal by the judge stays one during the pause, so that no call passes only because the judge is not asked.
      const kind = isRefused ? 'misconfigured' : 'unavailable'
      throw new JudgeFailure(kind, 'The judge has failed too often and is not asked for a moment.')
    },
    record(outcome: TryOutcome) {
      const sign = signs[outcome]
      if (sign === 'none') return
      isRefused = outcome === 'misconfigured'
      if (sign === 'alive') breaker.succeeded()
      else breaker.failed()
    },
  }
}
