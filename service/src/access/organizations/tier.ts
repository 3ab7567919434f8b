import { Plan } from '@gatehouse/contract/limits'

import type { Actor } from '#audit/actor.ts'
import type { Announce } from '#audit/announce.ts'
import { operator } from '#audit/event.ts'
import type { Db, Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import {
  lockOrganization,
  type OrganizationRow,
  setOrganizationPlans,
} from './organization-store.ts'

/** Sets the operator's plan; undefined when there is no such organization. Repeating changes nothing. */
export async function setPlan(
  organizationId: string,
  plan: Plan,
  { db, announce }: { db: Db; announce: Announce },
): Promise<OrganizationRow | undefined> {
  const deps = { announce, by: operator }
  return transact(db, (tx) => changePlan(tx, organizationId, { operator_plan: plan }, deps))
}

type PlanChange = Partial<Pick<OrganizationRow, 'operator_plan' | 'subscribed_plan'>>

/** Of the operator's plan and the subscribed one the higher is in force; a change is announced only when that changes. */
export async function changePlan(
  tx: Tx,
  organizationId: string,
  change: PlanChange,
  { announce, by }: { announce: Announce; by: Actor },
): Promise<OrganizationRow | undefined> {
  const before = await lockOrganization(tx, organizationId)
  if (!before) return undefined
  const { operator_plan, subscribed_plan } = { ...before, ...change }
  const isSame =
    operator_plan === before.operator_plan && subscribed_plan === before.subscribed_plan
  if (isSame) return before
  const plan = highestPlan([operator_plan, subscribed_plan])
  const plans = { plan, operator_plan, subscribed_plan }
  const after = await setOrganizationPlans(tx, organizationId, plans)
  if (after.plan !== before.plan) await announce(tx, tierChange(before, after, by))
  return after
}

/** Relies on the order of the contract's plans: free, developer, growth, scale. */
export const highestPlan = (plans: readonly Plan[]): Plan =>
  Plan.options.findLast((plan) => plans.includes(plan)) ?? 'free'

/** The announcement of a new tier, to every process: cached credentials carry their organization's tier. */
export const tierChange = (before: OrganizationRow, after: OrganizationRow, by: Actor) => ({
  organizationId: after.id,
  by,
  action: 'updated' as const,
  before: present(before),
  after: present(after),
  notifies: 'organization' as const,
})

const present = ({ id, plan, paid_micro_usd }: OrganizationRow) => ({
  id,
  object: 'organization',
  plan,
  paid_micro_usd: Number(paid_micro_usd),
})
