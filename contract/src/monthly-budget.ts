import { z } from 'zod'

const credits = z.int().min(0).max(100_000_000_000_000)
const percents = z.array(z.int().min(1).max(100)).max(10)

/** What an organization, a project or a key may cost in a month of the calendar, in UTC. */
export const MonthlyBudget = z
  .object({
    credits: credits.describe('0: nothing that costs anything is allowed.'),
    alert_percents: percents.describe('An event is written when calls have used such a share.'),
    hard_stop: z.boolean().describe('true: calls that could cost more than is left are refused.'),
  })
  .meta({ id: 'MonthlyBudget' })
export type MonthlyBudget = z.infer<typeof MonthlyBudget>

/** A budget as requests give it: whatever is left out has its default. */
export const GivenMonthlyBudget = z
  .strictObject({
    credits,
    alert_percents: percents.default([80, 100]),
    hard_stop: z.boolean().default(true),
  })
  .meta({ id: 'GivenMonthlyBudget' })

/** As a project or a key shows it. */
export const OwnMonthlyBudget = MonthlyBudget.nullable().describe('null: there is none.')

/** A change of `OwnMonthlyBudget`, which replaces all of it. */
export const MonthlyBudgetEdit = GivenMonthlyBudget.nullish().describe(
  'null removes the budget; absent keeps it.',
)
