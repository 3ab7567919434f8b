import { pageOf } from '@gatehouse/contract/list'
import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'
import { listGatewayQuotas, type QuotaItem } from '@gatehouse/contract/policy-gateway/quotas'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { invalidCursor } from '#http/read-page.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import { type CalendarWindow, periodAt } from './calendar.ts'
import { listUsage, readQuotaUsage } from './usage-store.ts'

type QuotaNumbers = { requests: number; tokens: number; window: CalendarWindow }
type FoundBudget = { subject: string; budget: MonthlyBudget }

/** What an organization has configured; null where it limits nothing. */
type OrganizationQuotas = Record<'user' | 'project', QuotaNumbers | null> & {
  budget: MonthlyBudget | null
}

type Deps = {
  db: Db
  /** The clock of the counters. */
  countersNow: Clock
  findQuotas(organizationId: string): Promise<OrganizationQuotas>
  listBudgets(
    scope: 'project' | 'key',
    page: { organizationId: string; after: string; limit: number },
  ): Promise<readonly FoundBudget[]>
}

/** The list is these, one after the other; each is ordered by its subjects. */
const parts = [
  { kind: 'budget', scope: 'organization' },
  { kind: 'budget', scope: 'project' },
  { kind: 'budget', scope: 'key' },
  { kind: 'quota', scope: 'project' },
  { kind: 'quota', scope: 'user' },
] as const
type Part = (typeof parts)[number]

type Asked = {
  organizationId: string
  configured: OrganizationQuotas
  nowMs: number
  after: string
  limit: number
}

export function serveListQuotas(app: FastifyInstance, deps: Deps) {
  bind(app, listGatewayQuotas, async ({ query }, { principal: { organizationId } }) => {
    const { limit, scope } = query
    const place = query.after === undefined ? null : placeOf(query.after)
    const configured = await deps.findQuotas(organizationId)
    const nowMs = deps.countersNow().getTime()
    const items: QuotaItem[] = []
    for (const [index, part] of parts.entries()) {
      const isWanted = scope === undefined || part.scope === scope
      if (!isWanted || (place && index < place.index) || items.length > limit) continue
      const after = place?.index === index ? place.subject : ''
      const left = limit + 1 - items.length
      const asked = { organizationId, configured, nowMs, after, limit: left }
      items.push(...(await readPart(deps, part, asked)))
    }
    return pageOf(items, limit)
  })
}

/** A cursor need not name an existing item, because users come and go with their windows. */
function placeOf(id: string) {
  const index = parts.findIndex((part) => id.startsWith(startOf(part)))
  const part = parts[index]
  if (!part) throw invalidCursor()
  return { index, subject: id.slice(startOf(part).length) }
}

const startOf = ({ kind, scope }: Part) => `${kind}:${scope}:`

async function readPart(deps: Deps, part: Part, asked: Asked): Promise<QuotaItem[]> {
  if (part.kind === 'quota') return readQuotas(deps, part, asked)
  const { organizationId, configured, nowMs, after } = asked
  const budgets =
    part.scope === 'organization'
      ? ofOrganization(organizationId, after, configured)
      : await deps.listBudgets(part.scope, asked)
  const counters = budgets.map(({ subject }) => ({
    organizationId,
    counter: {
      scope: part.scope,
      subject: part.scope === 'organization' ? '' : subject,
      period: periodAt('monthly', nowMs),
    },
  }))
  const usage = await readQuotaUsage(deps.db, counters)
  return budgets.map(({ subject, budget }, index) => ({
    ...membersOf(part, subject, 'monthly', nowMs),
    kind: 'budget' as const,
    scope: part.scope,
    credits: { used: usage[index]?.credits ?? 0, limit: budget.credits },
    hard_stop: budget.hard_stop,
  }))
}

const ofOrganization = (id: string, after: string, { budget }: OrganizationQuotas) =>
  budget && after === '' ? [{ subject: id, budget }] : []

type QuotaPart = Extract<Part, { kind: 'quota' }>

async function readQuotas(deps: Deps, part: QuotaPart, asked: Asked): Promise<QuotaItem[]> {
  const { configured, nowMs } = asked
  const quota = configured[part.scope]
  if (!quota) return []
  const period = periodAt(quota.window, nowMs)
  const rows = await listUsage(deps.db, { ...asked, scope: part.scope, period })
  return rows.map(({ subject, requests, tokens }) => ({
    ...membersOf(part, subject, quota.window, nowMs),
    kind: 'quota' as const,
    scope: part.scope,
    requests: { used: requests, limit: quota.requests || null },
    tokens: { used: tokens, limit: quota.tokens || null },
  }))
}

function membersOf(part: Part, subject: string, window: CalendarWindow, nowMs: number) {
  const { firstDay, endDay } = periodAt(window, nowMs)
  return {
    id: startOf(part) + subject,
    object: 'policy_gateway.quota' as const,
    subject,
    window,
    window_start: `${firstDay}T00:00:00Z`,
    window_end: `${endDay}T00:00:00Z`,
  }
}
