import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'

import type { OwnBudgets } from '#http/principal.ts'
import type { Tx } from '#platform/database.ts'

// The monthly budget of a project or a key, which stands in its row.

type BudgetRow = { monthly_budget: unknown }

/** Only what the contract has checked is stored. */
export const presentBudget = ({ monthly_budget }: BudgetRow) =>
  monthly_budget as MonthlyBudget | null

/** Absent keeps the budget, and null removes it. */
export const editBudget = (row: BudgetRow, edit: MonthlyBudget | null | undefined) =>
  edit === undefined ? presentBudget(row) : edit

export const isSameBudget = (one: MonthlyBudget | null, other: MonthlyBudget | null): boolean =>
  one?.credits === other?.credits &&
  one?.hard_stop === other?.hard_stop &&
  one?.alert_percents.join() === other?.alert_percents.join()

export const toBudgetColumn = (budget: MonthlyBudget | null) => budget && JSON.stringify(budget)

/** Budgets as they travel with a caller. Most callers have none. */
export const toOwnBudgets = (
  project: MonthlyBudget | null,
  key: MonthlyBudget | null,
): OwnBudgets | null => (project || key ? { project, key } : null)

type Budgeted = { organizationId: string; scope: 'project' | 'key'; subject: string }

/** Counts what was used since the begin of the month, for a subject that gets its first budget. */
export type CountEarlierUsage = (tx: Tx, subject: Budgeted) => Promise<void>
