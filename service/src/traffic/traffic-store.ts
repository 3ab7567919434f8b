import { type TrafficSpan, trafficGroupsMax } from '@gatehouse/contract/organization/traffic'
import { type RawBuilder, sql } from 'kysely'

import type { Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import { other } from './sums/add-up.ts'

/** What to sum, and by what. Undefined: all. */
export type TrafficQuery = {
  span: TrafficSpan
  from: Date
  to: Date
  groupBy: 'none' | 'project' | 'model' | 'outcome' | 'status'
  projectId: string | undefined
  model: string | undefined
  outcome: string | undefined
  status: string | undefined
}
export type KeyTrafficQuery = Pick<TrafficQuery, 'from' | 'to' | 'outcome'> & {
  groupBy: 'none' | 'outcome' | 'key'
  keyId: string | undefined
}

/** The sum of a group in a span. */
export type StoredTraffic = {
  /** In Unix seconds. */
  start: number
  /** Empty: none. `*`: all further groups. */
  group: string
  calls: number
  input_tokens: number
  cached_input_tokens: number
  output_tokens: number
  credits: number
  /** The cells of histograms. */
  latency: number[]
  first_token: number[]
}

const groupColumns = {
  none: sql`''::text collate "C"`,
  project: sql`project_id`,
  model: sql`model`,
  outcome: sql`outcome`,
  status: sql`status_class`,
  key: sql`key_id`,
}

const totals = sql`sum(calls)::float8 as calls, sum(input_tokens)::float8 as input_tokens,
  sum(cached_input_tokens)::float8 as cached_input_tokens, sum(output_tokens)::float8 as output_tokens,
  sum(credits)::float8 as credits`

/** Names the groups with the most calls in the whole time; the others become one group. */
const grouped = sql`ranked as (
    select own_group, row_number() over (order by sum(calls) desc, own_group) as place from picked
    where own_group <> ${other} group by own_group
  ), shown as (
    select picked.*, case when place <= ${trafficGroupsMax} then own_group else ${other} end as "group"
    from picked left join ranked using (own_group)
  ), summed as (
    select start, "group", ${totals} from shown group by start, "group"
  )`

const cellsOf = (column: 'latency' | 'first_token'): RawBuilder<unknown> => sql`
    select start, "group", array_agg(bucket * 1099511627776 + amount order by bucket) as cells from (
      select start, "group", cell >> 40 as bucket, sum((cell & 1099511627775)::float8) as amount
      from shown cross join unnest(shown.${sql.ref(column)}) as cell group by 1, 2, 3
    ) as buckets group by 1, 2`

/**
 * By time, and within a span with the most calls first. Each part of a row is computed once and put together by grouping: a join of the
 * parts would be planned for a few rows, and compute one part anew for each row of another.
 */
export async function sumTraffic(
  db: Db,
  organizationId: string,
  { span, from, to, groupBy, ...wanted }: TrafficQuery,
): Promise<StoredTraffic[]> {
  const conditions = [
    sql`organization_id = ${organizationId} and span = ${span}::traffic_span`,
    sql`start >= ${from} and start < ${to}`,
    ...equals(sql`project_id`, wanted.projectId),
    ...equals(sql`model`, wanted.model),
    ...equals(sql`outcome`, wanted.outcome),
    ...equals(sql`status_class`, wanted.status),
  ]
  const query = sql<StoredTraffic>`
    with picked as (
      select start, ${groupColumns[groupBy]} as own_group, calls, input_tokens, cached_input_tokens, output_tokens, credits, latency,
        first_token
      from traffic_sum where ${sql.join(conditions, sql` and `)}
    ), ${grouped}
    select extract(epoch from start)::float8 as start, "group", max(calls) as calls, max(input_tokens) as input_tokens,
      max(cached_input_tokens) as cached_input_tokens, max(output_tokens) as output_tokens, max(credits) as credits,
      coalesce(max(latency), '{}') as latency, coalesce(max(first_token), '{}') as first_token
    from (
      select *, null::float8[] as latency, null::float8[] as first_token from summed
      union all
      select start, "group", null, null, null, null, null, cells, null from (${cellsOf('latency')}) as latency
      union all
      select start, "group", null, null, null, null, null, null, cells from (${cellsOf('first_token')}) as first_token
    ) as parts
    group by parts.start, "group"
    order by parts.start, max(calls) desc, "group"`
  // To compile the query would take longer than to run it, and so would sorting on disk.
  return transact(db, async (tx) => {
    await sql`select set_config('jit', 'off', true), set_config('work_mem', '32MB', true)`.execute(
      tx,
    )
    return (await query.execute(tx)).rows
  })
}

/** The same of the sums by key, which are by day and have no histograms. */
export async function sumKeyTraffic(
  db: Db,
  organizationId: string,
  { from, to, groupBy, keyId, outcome }: KeyTrafficQuery,
): Promise<StoredTraffic[]> {
  const conditions = [
    sql`organization_id = ${organizationId} and day >= ${toDay(from)}::date and day < ${toDay(to)}::date`,
    ...equals(sql`key_id`, keyId),
    ...equals(sql`outcome`, outcome),
  ]
  const { rows } = await sql<StoredTraffic>`
    with picked as (
      select *, day as start, ${groupColumns[groupBy]} as own_group from traffic_key_day
      where ${sql.join(conditions, sql` and `)}
    ), ${grouped}
    select extract(epoch from start)::float8 as start, "group", calls, input_tokens, cached_input_tokens, output_tokens, credits,
      '{}'::float8[] as latency, '{}'::float8[] as first_token
    from summed order by start, calls desc, "group"`.execute(db)
  return rows
}

const equals = (column: RawBuilder<unknown>, value: string | undefined) =>
  value === undefined ? [] : [sql`${column} = ${value}`]

const toDay = (moment: Date) => moment.toISOString().slice(0, 10)
