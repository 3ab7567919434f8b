import { eventColumns, insertEventsFrom, toEventRecord } from '#audit/event-store.ts'
import type { Settlement } from '#credits/settlement.ts'
import { type Db, type NamedStatement, runNamed } from '#platform/database.ts'

/**
 * Inserts the events of calls and adds the calls to the day sums. Only a call whose event is new is added, so a repetition
 * changes nothing. Day sums are locked in their order, so that two statements never wait for each other.
 */
const recordStatement: NamedStatement = {
  name: 'record_calls',
  text: `
  with settlements as (
    select * from jsonb_to_recordset($1::jsonb) as
      (organization_id text, amount bigint, meta jsonb, ${eventColumns})
  ), new_events as (
    ${insertEventsFrom('settlements')} returning day, id
  ), new_sums as (
    select settlements.organization_id, settlements.day,
      coalesce(meta->>'project_id', '') as project_id, meta->>'key_id' as key_id,
      meta->>'model' as model, count(*) as requests,
      sum((meta->>'input_tokens')::bigint) as input_tokens,
      sum((meta->>'output_tokens')::bigint) as output_tokens, sum(amount) as credits
    from settlements join new_events
      on new_events.day = settlements.day and new_events.id = settlements.event_id
    group by 1, 2, 3, 4, 5
  )
  insert into usage_day as sums (organization_id, day, project_id, key_id, model,
    requests, input_tokens, output_tokens, credits,
    unbilled_requests, unbilled_input_tokens, unbilled_output_tokens, unbilled_credits)
  select organization_id, day, project_id, key_id, model,
    requests, input_tokens, output_tokens, credits, requests, input_tokens, output_tokens, credits
  from new_sums order by 1, 2, 3, 4, 5
  on conflict (organization_id, day, project_id, key_id, model) do update set
    requests = sums.requests + excluded.requests,
    input_tokens = sums.input_tokens + excluded.input_tokens,
    output_tokens = sums.output_tokens + excluded.output_tokens,
    credits = sums.credits + excluded.credits,
    unbilled_requests = sums.unbilled_requests + excluded.requests,
    unbilled_input_tokens = sums.unbilled_input_tokens + excluded.input_tokens,
    unbilled_output_tokens = sums.unbilled_output_tokens + excluded.output_tokens,
    unbilled_credits = sums.unbilled_credits + excluded.credits`,
}

/** Answers in the order of the settlements. No call may be in them twice. */
export async function recordCalls(db: Db, settlements: readonly Settlement[]): Promise<true[]> {
  const records = settlements.map(({ amount, meta, event, organizationId }) => ({
    ...toEventRecord(event),
    organization_id: organizationId,
    amount: String(amount),
    meta,
  }))
  await runNamed(db, recordStatement, [JSON.stringify(records)])
  return settlements.map(() => true)
}
