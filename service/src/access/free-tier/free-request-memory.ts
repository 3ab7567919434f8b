import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'

import type { FreeRefusal } from './free-request-store.ts'

/** Whether an identity has a free request left: 'unspent', or why there is none. */
export type FreeRequestStatus = 'unspent' | FreeRefusal

const entriesMax = 10_000
/** Short, because another process may spend a request or give one back at any time. */
const freshMs = 5000
const dayMs = 24 * 60 * 60 * 1000

/** Caches the status of identities for a few seconds, so that a repeated attempt costs no query. */
export function createFreeRequestMemory({ now, steadyNow }: { now: Clock; steadyNow: Clock }) {
  const statuses = new BoundedMap<string, { status: FreeRequestStatus; untilMs: number }>(
    entriesMax,
  )
  const toName = (identity: Buffer) => identity.toString('base64')

  return {
    /** Pass only what was just read from the database: noting a cached status would prolong it for ever. */
    note(identity: Buffer, status: FreeRequestStatus) {
      const untilMidnightMs = dayMs - (now().getTime() % dayMs)
      const untilMs = steadyNow().getTime() + Math.min(freshMs, untilMidnightMs)
      statuses.set(toName(identity), { status, untilMs })
    },
    get(identity: Buffer): FreeRequestStatus | undefined {
      const cached = statuses.get(toName(identity))
      return cached && steadyNow().getTime() < cached.untilMs ? cached.status : undefined
    },
    forget: (identity: Buffer) => void statuses.delete(toName(identity)),
  }
}
