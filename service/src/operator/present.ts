import type { OrganizationRow } from '#access/organizations/organization-store.ts'
import type { Account } from '#credits/holds/account-store.ts'
import { toSafeNumber, toUsd } from '#credits/money.ts'
import { tierOf } from '#limits/tiers.ts'

export const presentOrganization = (row: OrganizationRow) => ({
  id: row.id,
  name: row.name,
  status: row.status,
  plan: row.plan,
  tier: tierOf({ plan: row.plan, paidMicroUsd: Number(row.paid_micro_usd) }),
  paid_usd: toUsd(row.paid_micro_usd),
  created_at: row.created_at.toISOString(),
})

/** `plan`, which is in force, is the higher of the other two. */
export const presentWithPlans = (row: OrganizationRow) => ({
  ...presentOrganization(row),
  operator_plan: row.operator_plan,
  subscribed_plan: row.subscribed_plan,
})

export const presentAccount = ({ posted, used, held }: Account) => ({
  balance_credits: toSafeNumber(posted),
  balance_usd: toUsd(posted),
  held_credits: toSafeNumber(held),
  available_credits: toSafeNumber(posted - held),
  used_credits: toSafeNumber(used),
  used_usd: toUsd(used),
})

export const noOrganization = (id: string) => new Error(`No organization has the id '${id}'.`)
