import type { Plan } from '@gatehouse/contract/limits'

import type { Announce } from '#audit/announce.ts'
import { type Actor, operator } from '#audit/event.ts'
import type { Db, Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import {
  lockOrganization,
  type OrganizationRow,
  setOrganizationPlan,
} from './organization-store.ts'

/** Sets the plan; undefined when there is no such organization. Repeating changes nothing. */
export async function setPlan(
  organizationId: string,
  plan: Plan,
  { db, announce }: { db: Db; announce: Announce },
): Promise<OrganizationRow | undefined> {
  return transact(db, (tx) => changePlan(tx, organizationId, plan, { announce, by: operator }))
}

/** As `setPlan`, inside a transaction that does more. */
export async function changePlan(
  tx: Tx,
  organizationId: string,
  plan: Plan,
  { announce, by }: { announce: Announce; by: Actor },
): Promise<OrganizationRow | undefined> {
  const before = await lockOrganization(tx, organizationId)
  if (!before || before.plan === plan) return before
  const after = await setOrganizationPlan(tx, organizationId, plan)
  await announce(tx, tierChange(before, after, by))
  return after
}

/** Every process learns of it: the tier travels with what they remember of the organization. */
export const tierChange = (before: OrganizationRow, after: OrganizationRow, by: Actor) => ({
  ...{ organizationId: after.id, by, action: 'updated' as const },
  ...{ before: present(before), after: present(after), tells: 'organization' as const },
})

const present = ({ id, plan, paid_micro_usd }: OrganizationRow) => ({
  ...{ id, object: 'organization', plan, paid_micro_usd: Number(paid_micro_usd) },
})
