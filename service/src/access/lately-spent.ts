import type { Clock } from '#platform/clock.ts'

import type { FreeRefusal } from './free-request-store.ts'

const rememberedMax = 10_000
/** Another process may give a request back at any time: not believed for long. */
const believedMs = 5000

/** Who had no free request left a moment ago: somebody who asks over and over costs no query each time. */
export function createLatelySpent({ now }: { now: Clock }) {
  const spent = new Map<string, { refusal: FreeRefusal; untilMs: number }>()
  const nameOf = (identity: Buffer) => identity.toString('base64')

  return {
    note(identity: Buffer, refusal: FreeRefusal) {
      const name = nameOf(identity)
      spent.delete(name)
      spent.set(name, { refusal, untilMs: now().getTime() + believedMs })
      const [oldest] = spent.keys()
      if (spent.size > rememberedMax && oldest !== undefined) spent.delete(oldest)
    },
    of(identity: Buffer): FreeRefusal | null {
      const told = spent.get(nameOf(identity))
      return told && now().getTime() < told.untilMs ? told.refusal : null
    },
    forget: (identity: Buffer) => void spent.delete(nameOf(identity)),
  }
}
