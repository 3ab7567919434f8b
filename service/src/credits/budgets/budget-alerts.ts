import { buildRevisionEvent, gatehouse } from '#audit/event.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { type BudgetAlert, writeBudgetAlert } from './alert-store.ts'

type Options = { db: Db; now: Clock; log: Log; metrics: Metrics }

/** What a budget's subject has cost in a month so far. */
export type BudgetUsage = Omit<BudgetAlert, 'percent'> & {
  alertPercents: readonly number[]
  used: number
}

const knownMax = 100_000

/**
 * Writes an alert when a share of a budget is used. Every process that sees the usage, with any call, tries to; the
 * database lets one succeed. So a process that dies loses no alert: the next call brings it.
 */
export function createBudgetAlerts({ db, now, log, metrics }: Options) {
  /** Alerts that are written, or being written. */
  const known = new BoundedMap<string, true>(knownMax)
  const logFailure = createLogThrottle({ log, now })

  async function write(alert: BudgetAlert, used: number) {
    const name = nameOf(alert)
    known.set(name, true)
    try {
      const isNew = await writeBudgetAlert(db, alert, toEvent(alert, used, now()))
      if (isNew) metrics.budgetAlerts.inc({ scope: alert.scope })
    } catch (error) {
      known.delete(name)
      logFailure('budget_alert_failed', error)
    }
  }

  /** Never throws. */
  return async (usages: readonly BudgetUsage[]): Promise<void> => {
    const reached = usages.flatMap(({ alertPercents, used, ...budget }) =>
      alertPercents
        .filter((percent) => used > 0 && used * 100 >= budget.budget * percent)
        .map((percent) => ({ alert: { ...budget, percent }, used })),
    )
    const isNew = ({ alert }: { alert: BudgetAlert }) => !known.has(nameOf(alert))
    await Promise.all(reached.filter(isNew).map(({ alert, used }) => write(alert, used)))
  }
}
export type NoteBudgets = ReturnType<typeof createBudgetAlerts>

const nameOf = ({ organizationId, scope, subject, month, budget, percent }: BudgetAlert) =>
  [organizationId, scope, subject, month, budget, percent].join(' ')

function toEvent(alert: BudgetAlert, used: number, at: Date) {
  const { organizationId, scope, subject, month, budget, percent } = alert
  const facts = { scope, month, budget_credits: budget, used_credits: used, percent }
  const after = { id: subject || organizationId, object: 'monthly_budget', ...facts }
  return buildRevisionEvent(
    { organizationId, by: gatehouse, action: 'budget_alert', before: null, after, facts },
    at,
  )
}
