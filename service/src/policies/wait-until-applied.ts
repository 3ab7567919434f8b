import { setTimeout as sleep } from 'node:timers/promises'

import type { PolicyRollout } from '@gatehouse/contract/policy'

import type { Db } from '#platform/database.ts'

import { readRollout } from './read-rollout.ts'

const waitMaxMs = 10_000
const lookEveryMs = 200
/** Each waiter asks the database again and again: more than so many at once get the counts as they are. */
const waitersMax = 50
let waiters = 0

type Place = { organizationId: string; policyId: string }

/** Looks until every live process has applied the last change, the time is over, or the caller gone. */
export async function waitUntilApplied(
  db: Db,
  place: Place,
  signal: AbortSignal,
): Promise<PolicyRollout> {
  const deadline = performance.now() + (waiters < waitersMax ? waitMaxMs : 0)
  waiters++
  try {
    let rollout = await readRollout(db, place)
    while (!rollout.is_applied && performance.now() + lookEveryMs < deadline) {
      await sleep(lookEveryMs, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) break
      rollout = await readRollout(db, place)
    }
    return rollout
  } finally {
    waiters--
  }
}
