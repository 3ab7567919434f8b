import type { Plan } from '@gatehouse/contract/limits'

import type { Announce } from '#audit/announce.ts'
import { operator } from '#audit/event.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import {
  findPayment,
  insertPayment,
  lockOrganization,
  type OrganizationRow,
  setOrganizationPlan,
} from './organization-store.ts'

type Tools = { db: Db; now: Clock; announce: Announce }

/** Sets the plan; undefined when there is no such organization. Repeating changes nothing. */
export async function setPlan(
  organizationId: string,
  plan: Plan,
  { db, announce }: Tools,
): Promise<OrganizationRow | undefined> {
  return transact(db, async (tx) => {
    const before = await lockOrganization(tx, organizationId)
    if (!before || before.plan === plan) return before
    const after = await setOrganizationPlan(tx, organizationId, plan)
    await announce(tx, changeOf(before, after))
    return after
  })
}

type Payment = { id: string; microUsd: number }

/** Records a payment once: the same id again changes nothing, with another amount it is refused. */
export async function recordPayment(
  organizationId: string,
  { id, microUsd }: Payment,
  { db, now, announce }: Tools,
): Promise<OrganizationRow | undefined> {
  return transact(db, async (tx) => {
    const before = await lockOrganization(tx, organizationId)
    if (!before) return undefined
    const recorded = await findPayment(tx, organizationId, id)
    if (recorded && Number(recorded.micro_usd) !== microUsd) {
      throw new Error(`The payment '${id}' was recorded before, with another amount.`)
    }
    if (recorded) return before
    const payment = { organizationId, id, microUsd, recordedAt: now() }
    const after = await insertPayment(tx, payment)
    await announce(tx, { ...changeOf(before, after), facts: { payment_id: id } })
    return after
  })
}

/** Every process learns of it: the tier travels with what they remember of the organization. */
const changeOf = (before: OrganizationRow, after: OrganizationRow) => ({
  ...{ organizationId: after.id, by: operator, action: 'updated' as const },
  ...{ before: present(before), after: present(after), tells: 'organization' as const },
})

const present = ({ id, plan, paid_micro_usd }: OrganizationRow) => ({
  ...{ id, object: 'organization', plan, paid_micro_usd: Number(paid_micro_usd) },
})
