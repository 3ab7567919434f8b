import type { Principal } from '#http/principal.ts'
import type { ApiError } from '#platform/api-error.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'

import { keyScopeId } from './key-scope.ts'

type RefusedAnswer = { headers: Record<string, string>; refusal: ApiError }

const callersMax = 10_000
/** A payment or another plan may end the wait early, so a refusal is repeated for no longer than this. */
const repeatedForMs = 1000

/**
 * Remembers the callers that have just run out of requests. A refused call counts nowhere, so their next call
 * can be refused with the same answer before its body is read.
 */
export function createRecentRefusals({ now }: { now: Clock }) {
  const refusals = new BoundedMap<string, RefusedAnswer & { untilMs: number }>(callersMax)
  const callerOf = (principal: Principal) => `${principal.organizationId} ${keyScopeId(principal)}`

  return {
    record(principal: Principal, { waitMs, ...answer }: RefusedAnswer & { waitMs: number }) {
      const untilMs = now().getTime() + Math.min(waitMs, repeatedForMs)
      refusals.set(callerOf(principal), { ...answer, untilMs })
    },
    of(principal: Principal): RefusedAnswer | undefined {
      const answer = refusals.get(callerOf(principal))
      return answer && now().getTime() < answer.untilMs ? answer : undefined
    },
  }
}
export type RecentRefusals = ReturnType<typeof createRecentRefusals>
