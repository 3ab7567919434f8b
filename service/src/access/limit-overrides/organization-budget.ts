import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'

import { ApiError } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'

/** Finds the monthly budget of an organization; null: it has none. */
export type FindOrganizationBudget = (
  tx: Tx,
  organizationId: string,
) => Promise<MonthlyBudget | null>

/** For what is changed by a role in a project: a budget that could never be reached would hide the organization's. */
export async function refuseBudgetAboveOrganization(
  tx: Tx,
  organizationId: string,
  edit: MonthlyBudget | null | undefined,
  findOrganizationBudget: FindOrganizationBudget,
) {
  if (!edit) return
  const budget = await findOrganizationBudget(tx, organizationId)
  if (!budget || edit.credits <= budget.credits) return
  throw new ApiError(
    'invalid_parameter',
    `'body.monthly_budget.credits' is ${edit.credits}, above the organization's budget of ${budget.credits}; use at most ${budget.credits}.`,
    { param: 'body.monthly_budget.credits' },
  )
}
