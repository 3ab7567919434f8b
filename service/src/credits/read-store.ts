import type { LedgerKind, UsageGroup } from '@gatehouse/contract/credits'
import { type Selectable, sql } from 'kysely'

import type { LedgerEntry } from '#platform/database-types.ts'
import type { Db } from '#platform/database.ts'

/** In credits. `total` is everything ever paid and granted; calls under way are taken from `remaining`. */
export type Balance = { total: bigint; used: bigint; remaining: bigint }

export async function readBalances(
  db: Db,
  organizationIds: readonly string[],
): Promise<Map<string, Balance>> {
  const rows = await db
    .selectFrom('credit_account')
    .select(['organization_id', 'posted', 'used', 'held'])
    .where('organization_id', '=', sql<string>`any(${organizationIds}::text[])`)
    .execute()
  return new Map(
    rows.map(({ organization_id, posted, used, held }) => {
      const remaining = BigInt(posted) - BigInt(held)
      return [
        organization_id,
        { total: BigInt(posted) + BigInt(used), used: BigInt(used), remaining },
      ]
    }),
  )
}

export type LedgerRow = Selectable<LedgerEntry>

/** The place of an entry: it is given under the account's lock, so no entry is ever added before one. */
export type LedgerPosition = { at: Date; seq: string }

export async function findLedgerPosition(
  db: Db,
  organizationId: string,
  id: string,
): Promise<LedgerPosition | undefined> {
  return db
    .selectFrom('ledger_entry')
    .select(['at', 'seq'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
}

export type LedgerPage = {
  after: LedgerPosition | undefined
  limit: number
  order: 'asc' | 'desc'
  projectId: string | undefined
  kind: LedgerKind | undefined
  from: Date | undefined
  to: Date | undefined
}

/** One more than fits on the page, if there are more. */
export async function listLedger(
  db: Db,
  organizationId: string,
  page: LedgerPage,
): Promise<LedgerRow[]> {
  const { after, limit, order, projectId, kind, from, to } = page
  const side = order === 'asc' ? sql`>` : sql`<`
  let query = db
    .selectFrom('ledger_entry')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .orderBy('at', order)
    .orderBy('seq', order)
    .limit(limit + 1)
  if (projectId !== undefined) query = query.where('project_id', '=', projectId)
  if (kind !== undefined) query = query.where('kind', '=', kind)
  if (from) query = query.where('at', '>=', from)
  if (to) query = query.where('at', '<', to)
  if (after)
    query = query.where(sql<boolean>`(at, seq) ${side} (${after.at}, ${after.seq}::bigint)`)
  return query.execute()
}

const columns = { day: 'day', project: 'project_id', key: 'key_id', model: 'model' } as const

/** What an item is about, in the order of its groups. */
type UsageKey = readonly string[]

export type UsagePage = {
  from: string
  to: string
  groups: readonly UsageGroup[]
  after: UsageKey | undefined
  limit: number
  order: 'asc' | 'desc'
  projectId: string | undefined
  keyId: string | undefined
  model: string | undefined
}

export type UsageSum = {
  key: string[]
  requests: string
  input_tokens: string
  output_tokens: string
  credits: string
}

/** One more than fits on the page, if there are more. */
export async function sumUsage(
  db: Db,
  organizationId: string,
  page: UsagePage,
): Promise<UsageSum[]> {
  const { from, to, groups, after, limit, order } = page
  const names = groups.map((group) => sql.ref(columns[group]))
  const texts = groups.map((group) => sql`${sql.ref(columns[group])}::text`)
  const conditions = [
    sql`organization_id = ${organizationId}`,
    sql`day between ${from}::date and ${to}::date`,
    ...(page.projectId === undefined ? [] : [sql`project_id = ${page.projectId}`]),
    ...(page.keyId === undefined ? [] : [sql`key_id = ${page.keyId}`]),
    ...(page.model === undefined ? [] : [sql`model = ${page.model}`]),
    ...(after ? [isBehind(groups, after, order)] : []),
  ]
  const sorted = names.map((name) => (order === 'asc' ? sql`${name} asc` : sql`${name} desc`))
  const { rows } = await sql<UsageSum>`
    select array[${sql.join(texts)}] as key, sum(requests)::text as requests,
      sum(input_tokens)::text as input_tokens, sum(output_tokens)::text as output_tokens,
      sum(credits)::text as credits
    from usage_day where ${sql.join(conditions, sql` and `)}
    group by ${sql.join(names)} order by ${sql.join(sorted)} limit ${limit + 1}`.execute(db)
  return rows
}

function isBehind(groups: readonly UsageGroup[], after: UsageKey, order: 'asc' | 'desc') {
  const names = groups.map((group) => sql.ref(columns[group]))
  const values = groups.map((group, index) =>
    group === 'day' ? sql`${after[index]}::date` : sql`${after[index]}::text collate "C"`,
  )
  const side = order === 'asc' ? sql`>` : sql`<`
  return sql`(${sql.join(names)}) ${side} (${sql.join(values)})`
}
