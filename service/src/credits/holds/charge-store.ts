import { sql } from 'kysely'

import { eventColumns, insertEventsFrom, toEventRecord } from '#audit/event-store.ts'
import type { Settlement } from '#credits/settlement.ts'

// CTEs that the two statements of settle-store.ts share. Each of them reads `settlements` and defines
//
//   charges (organization_id, id, amount, meta, charge)
//
// where `amount` is what a call cost and `charge` how much of it the balance can pay.

/** The CTE `settlements`, one row for each, with the columns of its audit event. */
export const settlementRows = (settlements: readonly Settlement[]) => sql`
  settlements as (
    select * from rows from (jsonb_to_recordset(${toJson(settlements)}::jsonb) as
      (organization_id text, id text, amount bigint, meta jsonb, ${eventColumns})
    ) with ordinality
  )`

/** One JSON text: separate arrays of JSON and of bytes would each have to be escaped in their own way. */
const toJson = (settlements: readonly Settlement[]) =>
  JSON.stringify(
    settlements.map(({ id, amount, meta, event, organizationId }) => ({
      ...toEventRecord(event),
      organization_id: organizationId,
      id,
      amount: String(amount),
      meta,
    })),
  )

/** What follows from `charges`: the ledger entries, the day sums for charts and the audit events. */
export const recordedCharges = (kind: 'usage' | 'late_usage') => {
  const suffix = sql.lit(kind === 'usage' ? '' : ':late')
  return sql`
  new_entries as (
    insert into ledger_entry
      (organization_id, id, debit, credit, amount, kind, project_id, meta)
    select organization_id, id || ${suffix}, 'wallet'::ledger_account, 'revenue'::ledger_account,
      charge, ${sql.lit(kind)}::ledger_kind, meta->>'project_id', meta from charges
    union all
    select organization_id, id || ${suffix} || ':writeoff', 'writeoff', 'revenue', amount - charge,
      'writeoff', meta->>'project_id', meta from charges where amount > charge
    returning organization_id, kind, amount, project_id, meta, at
  ), updated_days as (
    insert into usage_day as sums (organization_id, day, project_id, key_id, model,
      requests, input_tokens, output_tokens, credits)
    select organization_id, (at at time zone 'UTC')::date, coalesce(project_id, ''),
      meta->>'key_id', meta->>'model', count(*), sum((meta->>'input_tokens')::bigint),
      sum((meta->>'output_tokens')::bigint), sum(amount)
    from new_entries where kind <> 'writeoff' group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
    on conflict (organization_id, day, project_id, key_id, model) do update set
      requests = sums.requests + excluded.requests,
      input_tokens = sums.input_tokens + excluded.input_tokens,
      output_tokens = sums.output_tokens + excluded.output_tokens,
      credits = sums.credits + excluded.credits
  ), new_events as (${insertEventsFrom(sql`settlements join charges using (organization_id, id)`)})`
}
