import { setTimeout as sleep } from 'node:timers/promises'

import type { PolicyRollout } from '@gatehouse/contract/policy'

import type { Db } from '#platform/database.ts'
import type { PolicyKey } from '#policies/policy.ts'

import { readRollout } from './read-rollout.ts'

const waitMaxMs = 10_000
const readEveryMs = 200
/** Each waiting call polls the database. Further calls do not wait and get the current counts. */
const waitersMax = 50
let waiters = 0

/** Polls until every live process has applied the last change, the time is up, or `signal` aborts. */
export async function waitUntilApplied(
  db: Db,
  key: PolicyKey,
  signal: AbortSignal,
): Promise<PolicyRollout> {
  const deadline = performance.now() + (waiters < waitersMax ? waitMaxMs : 0)
  waiters++
  try {
    let rollout = await readRollout(db, key)
    while (!rollout.is_applied && performance.now() + readEveryMs < deadline) {
      await sleep(readEveryMs, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) break
      rollout = await readRollout(db, key)
    }
    return rollout
  } finally {
    waiters--
  }
}
