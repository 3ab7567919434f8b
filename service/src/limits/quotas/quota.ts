import { hash } from 'node:crypto'

import { type CalendarWindow, dayOf, type Period, periodAt } from './calendar.ts'

export type QuotaScope = 'organization' | 'project' | 'key' | 'user'

/** How much a user or a project may use in a window. 0 is no limit. */
export type Quota = {
  scope: 'user' | 'project'
  subject: string
  window: CalendarWindow
  requests: number
  tokens: number
}

/** How much an organization, a project or a key may cost in a month, in credits. */
export type Budget = {
  scope: 'organization' | 'project' | 'key'
  /** Empty for the organization. */
  subject: string
  credits: number
  /** At these shares of the credits an alert is written. */
  alertPercents: readonly number[]
  /** Whether calls beyond it are refused. */
  hasHardStop: boolean
}

/** The quotas and budgets that a call counts in. */
export type QuotaRules = {
  quotas: readonly Quota[]
  budgets: readonly Budget[]
  /** Whether quotas refuse calls, or are only counted. Budgets do in any case. */
  areQuotasEnforced: boolean
  /** The policy that refusals by quotas name. */
  policy: { id: string; version: number } | null
}

export const quotaUnits = ['requests', 'tokens', 'credits'] as const
export type QuotaUnit = (typeof quotaUnits)[number]
export type QuotaAmounts = Readonly<Record<QuotaUnit, number>>

/** What is counted for one subject in one period. `Infinity` is no limit. */
export type QuotaCounter = {
  scope: QuotaScope
  subject: string
  window: CalendarWindow
  period: Period
  /** Its name among the counters of the period. */
  field: string
  limits: QuotaAmounts
}

/** The counters of a call in one period, and the name of what the call reserves in them. */
export type QuotaReservation = {
  period: Period
  counters: readonly QuotaCounter[]
  /** `<lease>|<tokens>|<credits>|<field>|<field>…` */
  name: string
}

/** Amounts that the database has, and when they were asked for by the clock of the counters. */
type KnownAmounts = { askedAtMs: number; amounts: ReadonlyMap<QuotaCounter, QuotaAmounts> }

/** What a call reserves. */
export type CallQuotas = {
  /** The day of the call. */
  day: string
  reservations: readonly QuotaReservation[]
  counters: readonly QuotaCounter[]
  tokens: number
  credits: number
  known: KnownAmounts | null
  /** How many processes share what is left, where each counts by itself. */
  sharedBy: number
}

type Asked = { rules: QuotaRules; leaseId: string; tokens: number; credits: number; nowMs: number }

/** Which counters a call has, and what it reserves in them; undefined if no rule counts it. */
export function toCallQuotas(asked: Asked): CallQuotas | undefined {
  const { rules, leaseId, tokens, credits, nowMs } = asked
  const merged = new Map<string, QuotaCounter>()
  const quotas = rules.quotas.flatMap((quota) => ofQuota(quota, rules.areQuotasEnforced))
  for (const limited of [...quotas, ...rules.budgets.map(ofBudget)]) {
    const period = periodAt(limited.window, nowMs)
    const field = fieldOf(limited.scope, limited.subject)
    const name = `${period.name} ${field}`
    const other = merged.get(name)
    merged.set(name, {
      ...limited,
      period,
      field,
      limits: other ? lowest(other.limits, limited.limits) : limited.limits,
    })
  }
  if (merged.size === 0) return undefined
  const groups = Map.groupBy(merged.values(), ({ period }) => period.name)
  const reservations = [...groups.values()].map((counters) => ({
    period: (counters[0] as QuotaCounter).period,
    counters,
    name: [leaseId, tokens, credits, ...counters.map(({ field }) => field)].join('|'),
  }))
  return {
    day: dayOf(nowMs),
    reservations,
    counters: reservations.flatMap((each) => each.counters),
    tokens,
    credits,
    known: null,
    sharedBy: 1,
  }
}

type Limited = Pick<QuotaCounter, 'scope' | 'subject' | 'window' | 'limits'>

const noLimits: QuotaAmounts = { requests: Infinity, tokens: Infinity, credits: Infinity }
const limitOf = (number: number) => (number === 0 ? Infinity : number)

/** A quota that limits nothing is not counted. */
function ofQuota(quota: Quota, isEnforced: boolean): Limited[] {
  const { requests, tokens, scope, subject, window } = quota
  if (requests === 0 && tokens === 0) return []
  if (!isEnforced) return [{ scope, subject, window, limits: noLimits }]
  const limits = { requests: limitOf(requests), tokens: limitOf(tokens), credits: Infinity }
  return [{ scope, subject, window, limits }]
}

/** A budget without a hard stop is only counted, for its alerts. A budget of 0 credits allows only calls that cost nothing. */
const ofBudget = ({ scope, subject, credits, hasHardStop }: Budget): Limited => ({
  scope,
  subject,
  window: 'monthly',
  limits: { requests: Infinity, tokens: Infinity, credits: hasHardStop ? credits : Infinity },
})

const lowest = (one: QuotaAmounts, other: QuotaAmounts): QuotaAmounts => ({
  requests: Math.min(one.requests, other.requests),
  tokens: Math.min(one.tokens, other.tokens),
  credits: Math.min(one.credits, other.credits),
})

/** Users are named by callers, in any characters; other ids are ours and contain no '|'. */
function fieldOf(scope: QuotaScope, subject: string): string {
  if (scope === 'organization') return 'o'
  if (scope === 'user') return `u${hash('sha256', subject, 'base64url').slice(0, 27)}`
  return `${scope === 'project' ? 'p' : 'k'}${subject}`
}
