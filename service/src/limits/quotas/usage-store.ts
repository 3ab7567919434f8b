import { sql } from 'kysely'

import { type Db, type NamedStatement, runNamed, type Tx } from '#platform/database.ts'

import type { Period } from './calendar.ts'
import type { QuotaAmounts, QuotaCounter } from './quota.ts'

/** The days of a period are found by the primary key. */
const usageStatement: NamedStatement = {
  name: 'read_quota_usage',
  text: `
  select coalesce(sum(usage.requests), 0), coalesce(sum(usage.tokens), 0), coalesce(sum(usage.credits), 0)
  from unnest($1::text[], $2::quota_scope[], $3::text[], $4::date[], $5::date[]) with ordinality
    as item (organization_id, scope, subject, first_day, end_day, number)
  left join quota_usage usage on usage.organization_id = item.organization_id and usage.scope = item.scope
    and usage.subject = item.subject and usage.window_start >= item.first_day
    and usage.window_start < item.end_day
  group by item.number order by item.number`,
}

export type AskedCounter = {
  organizationId: string
  counter: Pick<QuotaCounter, 'scope' | 'subject' | 'period'>
}

/** What ended calls have used, in the order of the counters. */
export async function readQuotaUsage(
  db: Db,
  asked: readonly AskedCounter[],
): Promise<QuotaAmounts[]> {
  const counters = asked.map(({ counter }) => counter)
  const rows = await runNamed<[requests: string, tokens: string, credits: string]>(
    db,
    usageStatement,
    [
      asked.map(({ organizationId }) => organizationId),
      counters.map(({ scope }) => scope),
      counters.map(({ subject }) => subject),
      counters.map(({ period }) => period.firstDay),
      counters.map(({ period }) => period.endDay),
    ],
  )
  return rows.map(([requests, tokens, credits]) => ({
    requests: Number(requests),
    tokens: Number(tokens),
    credits: Number(credits),
  }))
}

type UsagePage = {
  organizationId: string
  scope: 'user' | 'project'
  period: Period
  after: string
  limit: number
}

/** What subjects with calls in a period have used, by their names. */
export async function listUsage(
  db: Db,
  { organizationId, scope, period, after, limit }: UsagePage,
): Promise<{ subject: string; requests: number; tokens: number }[]> {
  const { rows } = await sql<{ subject: string; requests: string; tokens: string }>`
    select subject, sum(requests) as requests, sum(tokens) as tokens from quota_usage
    where organization_id = ${organizationId} and scope = ${scope}::quota_scope and subject > ${after}
      and window_start >= ${period.firstDay}::date and window_start < ${period.endDay}::date
    group by subject order by subject limit ${limit}`.execute(db)
  return rows.map(({ subject, requests, tokens }) => ({
    subject,
    requests: Number(requests),
    tokens: Number(tokens),
  }))
}

/** Removes days that no window reaches back to. Returns how many rows there were. */
export async function sweepQuotaUsage(tx: Tx, before: Date, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from quota_usage where ctid = any (array(
      select ctid from quota_usage where window_start < ${before}::date limit ${limit} for update skip locked))`.execute(
    tx,
  )
  return Number(numAffectedRows ?? 0)
}
