import type { Principal } from '#http/principal.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'

import { keyScopeOf } from './subject.ts'

type Refused = { headers: Record<string, string>; refusal: ApiError }

const rememberedMax = 10_000
/** A refusal says how long to wait; payments and plans may shorten that, so it is not believed for long. */
const believedMs = 1000

/**
 * Who was refused a moment ago. A call that is refused counts nowhere, so somebody who is out of requests can
 * be told so again before a large body is read.
 */
export function createLatelyRefused({ now }: { now: Clock }) {
  const refused = new Map<string, Refused & { untilMs: number }>()
  const nameOf = (principal: Principal) => `${principal.organizationId} ${keyScopeOf(principal)}`

  return {
    note(principal: Principal, { waitMs, ...told }: Refused & { waitMs: number }) {
      const name = nameOf(principal)
      refused.delete(name)
      refused.set(name, { ...told, untilMs: now().getTime() + Math.min(waitMs, believedMs) })
      const [oldest] = refused.keys()
      if (refused.size > rememberedMax && oldest !== undefined) refused.delete(oldest)
    },
    of(principal: Principal): Refused | undefined {
      const told = refused.get(nameOf(principal))
      return told && now().getTime() < told.untilMs ? told : undefined
    },
  }
}
export type LatelyRefused = ReturnType<typeof createLatelyRefused>
