import { createBreaker } from '#platform/breaker.ts'
import type { Clock } from '#platform/clock.ts'

import type { Upstream } from './catalogue.ts'
import { createRetryBudget } from './retry-budget.ts'

export const breakerPauseMs = 5000
const failuresMax = 5

/** What this process has experienced with each upstream. */
export function createHealths(now: Clock) {
  const healths = new Map<string, ReturnType<typeof createHealth>>()
  const createHealth = () => ({
    breaker: createBreaker({ now, failuresMax, pauseMs: breakerPauseMs }),
    budget: createRetryBudget(),
  })
  return ({ name }: Upstream) => {
    const known = healths.get(name)
    if (known) return known
    const fresh = createHealth()
    healths.set(name, fresh)
    return fresh
  }
}
