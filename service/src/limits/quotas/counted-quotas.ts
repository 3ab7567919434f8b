import type { QuotaUsage } from './quota-counts.ts'
import type { Budget, CallQuotas, QuotaCounter, QuotaRules, QuotaScope } from './quota.ts'

/** Where a call is counted, and with how much; its event says so, and the database adds it up. */
export type CountedQuotas = {
  /** When it was admitted. */
  readonly day: string
  readonly subjects: readonly { scope: QuotaScope; subject: string }[]
  /** Whose quotas it exceeds, where those are only counted. */
  readonly exceeded: readonly ('user' | 'project')[]
  /** Known when the call has ended. */
  tokens: number
  credits: number
}

type Admitted = { call: CallQuotas; usage: readonly QuotaUsage[] }

/** A subject may have several windows; the database has days, and needs it once. */
export function toCountedQuotas(
  { call: { day, counters }, usage }: Admitted,
  rules: QuotaRules | null,
): CountedQuotas {
  const named = new Map(
    counters.map(({ scope, subject }) => [`${scope} ${subject}`, { scope, subject }]),
  )
  const exceeded = rules ? findExceeded(rules, counters, usage) : []
  return { day, subjects: [...named.values()], exceeded, tokens: 0, credits: 0 }
}

/** The usage is that after the call. */
const findExceeded = (
  { quotas, areQuotasEnforced }: QuotaRules,
  counters: CallQuotas['counters'],
  usage: readonly QuotaUsage[],
) =>
  quotas.flatMap(({ scope, subject, window, requests, tokens }) => {
    const used = usage[indexOf(counters, { scope, subject, window })]
    if (areQuotasEnforced || !used) return []
    const isExceeded =
      (requests > 0 && used.requests > requests) || (tokens > 0 && used.tokens > tokens)
    return isExceeded ? [scope] : []
  })

const indexOf = (
  counters: CallQuotas['counters'],
  { scope, subject, window }: Pick<QuotaCounter, 'scope' | 'subject' | 'window'>,
) =>
  counters.findIndex(
    (each) => each.scope === scope && each.subject === subject && each.window === window,
  )

/** What the subjects of budgets have cost this month, by the credits of each counter. */
export const budgetUsages = (
  organizationId: string,
  budgets: readonly Budget[],
  { counters }: CallQuotas,
  credits: readonly number[],
) =>
  budgets.flatMap(({ scope, subject, credits: budget, alertPercents }) => {
    const index = indexOf(counters, { scope, subject, window: 'monthly' })
    const [counter, used] = [counters[index], credits[index]]
    if (!counter || used === undefined) return []
    const month = counter.period.firstDay
    return [{ organizationId, scope, subject, month, budget, alertPercents, used }]
  })
