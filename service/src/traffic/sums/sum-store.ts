import type { TrafficSpan } from '@gatehouse/contract/organization/traffic'
import { sql } from 'kysely'

import type { NamedTx, Tx } from '#platform/database.ts'
import { binaryArray, plainArray } from '#platform/statements/array-values.ts'
import { toCells } from '#traffic/histogram.ts'

import type { KeySum, SumKey, TrafficSum } from './add-up.ts'
import { type Filled, nameOfKey, nameOfSum, rowsMax, spanOfSum } from './bound-rows.ts'
import type { StatusClass } from './call-fact.ts'

const textArray = (texts: readonly string[]) => binaryArray('text', texts)

/** The spans that may become full, and the rows that they have by now. */
export type NearlyFull = { filled: Filled[]; stored: ReadonlySet<string> }

// `limit`: more rows than that need not be counted.
const countSumsStatement = {
  name: 'traffic_count_sums',
  text: `
    select wanted.organization_id, wanted.span, wanted.start::float8, (select count(*)::integer from (
      select from traffic_sum as sum
      where sum.organization_id = wanted.organization_id and sum.span = wanted.span::traffic_span
        and sum.start = to_timestamp(wanted.start) limit ${2 * rowsMax}
    ) as rows)
    from unnest($1::text[], $2::text[], $3::bigint[]) as wanted (organization_id, span, start)`,
}

const listSumsStatement = {
  name: 'traffic_list_sums',
  text: `
    select sum.organization_id, sum.span::text, extract(epoch from sum.start)::float8, sum.project_id, sum.model, sum.outcome,
      sum.status_class
    from unnest($1::text[], $2::text[], $3::bigint[]) as wanted (organization_id, span, start)
    join traffic_sum as sum on sum.organization_id = wanted.organization_id and sum.span = wanted.span::traffic_span
      and sum.start = to_timestamp(wanted.start)`,
}

/** Looks up the rows of those spans only that may become full: there are hardly any. */
export async function findFullSpans(tx: NamedTx, sums: readonly TrafficSum[]): Promise<NearlyFull> {
  const spans = [...Map.groupBy(sums, (sum) => `${sum.organizationId}\n${spanOfSum(sum)}`).values()]
  const valuesOf = (some: readonly Pick<SumKey, 'organizationId' | 'span' | 'start'>[]) => [
    textArray(some.map(({ organizationId }) => organizationId)),
    plainArray(some.map(({ span }) => span)),
    plainArray(some.map(({ start }) => start)),
  ]
  type Counted = [organizationId: string, span: TrafficSpan, start: number, rows: number]
  const firsts = spans.flatMap((same) => same.slice(0, 1))
  const counted = await tx.run<Counted>(countSumsStatement, valuesOf(firsts))
  const newRows = new Map(
    spans.map((same) => [
      `${same[0]?.organizationId}\n${same[0] && spanOfSum(same[0])}`,
      same.length,
    ]),
  )
  const full = counted
    .map(([organizationId, span, start, rows]) => ({ organizationId, span, start, rows }))
    .filter((each) => {
      const more = newRows.get(`${each.organizationId}\n${spanOfSum(each)}`) ?? 0
      return each.rows + more > rowsMax
    })
  if (full.length === 0) return { filled: [], stored: new Set() }
  type Name = [string, TrafficSpan, number, string, string, string, StatusClass]
  const names = await tx.run<Name>(listSumsStatement, valuesOf(full))
  return {
    filled: full.map((each) => ({ ...each, at: spanOfSum(each) })),
    stored: new Set(
      names.map(([organizationId, span, start, projectId, model, outcome, statusClass]) =>
        nameOfSum({ organizationId, span, start, projectId, model, outcome, statusClass }),
      ),
    ),
  }
}

const countKeysStatement = {
  name: 'traffic_count_keys',
  text: `
    select wanted.organization_id, wanted.day, (select count(*)::integer from (
      select from traffic_key_day as sum
      where sum.organization_id = wanted.organization_id and sum.day = wanted.day::date limit ${2 * rowsMax}
    ) as rows)
    from unnest($1::text[], $2::text[]) as wanted (organization_id, day)`,
}

const listKeysStatement = {
  name: 'traffic_list_keys',
  text: `
    select sum.organization_id, sum.day::text, sum.key_id, sum.outcome
    from unnest($1::text[], $2::text[]) as wanted (organization_id, day)
    join traffic_key_day as sum on sum.organization_id = wanted.organization_id and sum.day = wanted.day::date`,
}

/** The same for the sums by key. */
export async function findFullDays(tx: NamedTx, sums: readonly KeySum[]): Promise<NearlyFull> {
  const days = Map.groupBy(sums, ({ organizationId, day }) => `${organizationId}\n${day}`)
  const valuesOf = (some: readonly Pick<KeySum, 'organizationId' | 'day'>[]) => [
    textArray(some.map(({ organizationId }) => organizationId)),
    plainArray(some.map(({ day }) => day)),
  ]
  const firsts = [...days.values()].flatMap((same) => same.slice(0, 1))
  type Counted = [organizationId: string, day: string, rows: number]
  const counted = await tx.run<Counted>(countKeysStatement, valuesOf(firsts))
  const full = counted
    .map(([organizationId, day, rows]) => ({ organizationId, day, rows }))
    .filter(
      ({ organizationId, day, rows }) =>
        rows + (days.get(`${organizationId}\n${day}`)?.length ?? 0) > rowsMax,
    )
  if (full.length === 0) return { filled: [], stored: new Set() }
  type Name = [organizationId: string, day: string, keyId: string, outcome: string]
  const names = await tx.run<Name>(listKeysStatement, valuesOf(full))
  return {
    filled: full.map((each) => ({ ...each, at: each.day })),
    stored: new Set(
      names.map(([organizationId, day, keyId, outcome]) =>
        nameOfKey({ organizationId, day, keyId, outcome }),
      ),
    ),
  }
}

const addTotals = (name: 'sums' | 'keys') =>
  ['calls', 'input_tokens', 'cached_input_tokens', 'output_tokens', 'credits']
    .map((column) => `${column} = ${name}.${column} + excluded.${column}`)
    .join(', ')

const addSumsStatement = {
  name: 'traffic_add_sums',
  text: `
    insert into traffic_sum as sums (organization_id, span, start, project_id, model, outcome, status_class, calls, input_tokens,
      cached_input_tokens, output_tokens, credits, latency, first_token)
    select organization_id, span::traffic_span, to_timestamp(start), project_id, model, outcome, status_class, calls, input_tokens,
      cached_input_tokens, output_tokens, credits, latency::bigint[], first_token::bigint[]
    from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[],
      $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::text[]) as given (organization_id, span, start, project_id,
      model, outcome, status_class, calls, input_tokens, cached_input_tokens, output_tokens, credits, latency, first_token)
    on conflict (organization_id, span, start, project_id, model, outcome, status_class) do update set ${addTotals('sums')},
      latency = add_histograms(sums.latency, excluded.latency),
      first_token = add_histograms(sums.first_token, excluded.first_token)`,
}

type Totals = Pick<
  KeySum,
  'calls' | 'inputTokens' | 'cachedInputTokens' | 'outputTokens' | 'credits'
>
const totalValues = (sums: readonly Totals[]) => [
  plainArray(sums.map(({ calls }) => calls)),
  plainArray(sums.map(({ inputTokens }) => inputTokens)),
  plainArray(sums.map(({ cachedInputTokens }) => cachedInputTokens)),
  plainArray(sums.map(({ outputTokens }) => outputTokens)),
  plainArray(sums.map(({ credits }) => credits)),
]

/** All of one row's organization are added by one worker at a time, which holds its lock: rows need no order. */
export async function addSums(tx: NamedTx, sums: readonly TrafficSum[]) {
  await tx.run(addSumsStatement, [
    textArray(sums.map(({ organizationId }) => organizationId)),
    plainArray(sums.map(({ span }) => span)),
    plainArray(sums.map(({ start }) => start)),
    textArray(sums.map(({ projectId }) => projectId)),
    textArray(sums.map(({ model }) => model)),
    textArray(sums.map(({ outcome }) => outcome)),
    plainArray(sums.map(({ statusClass }) => statusClass)),
    ...totalValues(sums),
    textArray(sums.map(({ latency }) => plainArray(toCells(latency)))),
    textArray(sums.map(({ firstToken }) => plainArray(toCells(firstToken)))),
  ])
}

const addKeysStatement = {
  name: 'traffic_add_keys',
  text: `
    insert into traffic_key_day as keys (organization_id, day, key_id, outcome, calls, input_tokens, cached_input_tokens,
      output_tokens, credits)
    select * from unnest($1::text[], $2::date[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
      $9::bigint[])
    on conflict (organization_id, day, key_id, outcome) do update set ${addTotals('keys')}`,
}

export async function addKeys(tx: NamedTx, sums: readonly KeySum[]) {
  await tx.run(addKeysStatement, [
    textArray(sums.map(({ organizationId }) => organizationId)),
    plainArray(sums.map(({ day }) => day)),
    textArray(sums.map(({ keyId }) => keyId)),
    textArray(sums.map(({ outcome }) => outcome)),
    ...totalValues(sums),
  ])
}

/** Removes sums of a span that are too old; returns how many. */
export async function sweepSums(
  tx: Tx,
  span: TrafficSpan,
  before: Date,
  limit: number,
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from traffic_sum where ctid = any (array(
      select ctid from traffic_sum where span = ${span}::traffic_span and start < ${before}
      limit ${limit} for update skip locked))`.execute(tx)
  return Number(numAffectedRows ?? 0)
}

export async function sweepKeySums(tx: Tx, before: Date, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from traffic_key_day where ctid = any (array(
      select ctid from traffic_key_day where day < ${before.toISOString().slice(0, 10)}::date
      limit ${limit} for update skip locked))`.execute(tx)
  return Number(numAffectedRows ?? 0)
}
