import { lockOrganization } from '#access/organizations/organization-store.ts'
import type { Tx } from '#platform/database.ts'
import { patternsTooSlow } from '#policies/refusals.ts'

import { sumPatternCosts } from './pattern-cost-store.ts'

type Wanted = { organizationId: string; id: string }

/**
 * Refuses to put patterns in force with which those of the organization would cost too much together. A change that costs no
 * more than what it replaces is never refused: the bound may have been lowered.
 */
export async function requireAffordable(
  tx: Tx,
  { organizationId, id }: Wanted,
  costs: readonly number[],
  costMaxMs: number,
) {
  const addedUs = costs.reduce((sum, cost) => sum + cost, 0)
  if (addedUs === 0) return
  // Of two changes at the same time, the second sees what the first has put in force.
  await lockOrganization(tx, organizationId)
  const { ownUs, othersUs } = await sumPatternCosts(tx, { organizationId, policyId: id })
  const sumMs = Math.ceil((addedUs + othersUs) / 1000)
  if (addedUs > ownUs && sumMs > costMaxMs) throw patternsTooSlow(sumMs, costMaxMs)
}

/** As they are stored: in microseconds. */
export const toStoredCosts = (costsMs: readonly number[]): number[] =>
  costsMs.map((ms) => Math.min(Math.ceil(ms * 1000), 1_000_000_000))
