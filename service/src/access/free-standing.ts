import type { Clock } from '#platform/clock.ts'

import type { FreeRefusal } from './free-request-store.ts'

/** Whether somebody has a free request left: there is one, or why there is none. */
export type FreeStanding = 'unspent' | FreeRefusal

const rememberedMax = 10_000
/** Another process may spend a request or give one back at any time: not believed for long. */
const believedMs = 5000
const dayMs = 24 * 60 * 60 * 1000

/** How things stood a moment ago: somebody who asks over and over costs no query each time. */
export function createFreeStandings({ now }: { now: Clock }) {
  const standings = new Map<string, { standing: FreeStanding; untilMs: number }>()
  const nameOf = (identity: Buffer) => identity.toString('base64')

  return {
    /** Only what was just learned: repeating what is remembered would make it last for ever. */
    note(identity: Buffer, standing: FreeStanding) {
      const name = nameOf(identity)
      const nowMs = now().getTime()
      const midnightMs = Math.ceil((nowMs + 1) / dayMs) * dayMs
      standings.delete(name)
      standings.set(name, { standing, untilMs: Math.min(nowMs + believedMs, midnightMs) })
      const [oldest] = standings.keys()
      if (standings.size > rememberedMax && oldest !== undefined) standings.delete(oldest)
    },
    of(identity: Buffer): FreeStanding | undefined {
      const known = standings.get(nameOf(identity))
      return known && now().getTime() < known.untilMs ? known.standing : undefined
    },
    forget: (identity: Buffer) => void standings.delete(nameOf(identity)),
  }
}
