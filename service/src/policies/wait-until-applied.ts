import { setTimeout as sleep } from 'node:timers/promises'

import type { PolicyRollout } from '@gatehouse/contract/policy'

import type { Db } from '#platform/database.ts'

import { readRollout } from './read-rollout.ts'

const waitMaxMs = 10_000
const lookEveryMs = 100

type Place = { organizationId: string; policyId: string }

/** Looks until every live process has applied the last change, or the time is over. */
export async function waitUntilApplied(
  db: Db,
  place: Place,
  signal: AbortSignal,
): Promise<PolicyRollout> {
  const deadline = performance.now() + waitMaxMs
  let rollout = await readRollout(db, place)
  while (!rollout.is_applied && performance.now() + lookEveryMs < deadline) {
    await sleep(lookEveryMs, undefined, { signal })
    rollout = await readRollout(db, place)
  }
  return rollout
}
