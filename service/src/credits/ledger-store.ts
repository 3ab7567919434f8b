import { type RawBuilder, sql } from 'kysely'

import type { Event } from '#audit/event.ts'
import type { Tx } from '#platform/database.ts'

import type { Settlement } from './credit-store.ts'

// What the two statements have in common that charge for a call, one that finds its hold and one that does
// not. Each writes ledger entries as `entries` and names what it charged for in `charged`.

const eventColumns = sql`event_id uuid, day date, shard smallint, kind text, at timestamptz,
  header jsonb, payload bytea, salt bytea, payload_hash bytea`

/** From rows of these columns. Whoever tells an event twice meets its first copy. */
const insertEvents = (rows: RawBuilder<unknown>) => sql`
  insert into event (day, id, shard, organization_id, kind, at, header, payload, salt, payload_hash)
  select day, event_id, shard, organization_id, kind, at, header, payload, salt, payload_hash
  from ${rows} on conflict do nothing`

/** The settlements as rows: `asked`, with their events. */
export const askedSettlements = (settlements: readonly Settlement[]) => sql`
  asked as (
    select * from rows from (jsonb_to_recordset(${toJson(settlements)}::jsonb) as
      (organization_id text, id text, amount bigint, meta jsonb, ${eventColumns})
    ) with ordinality
  )`

/** One text carries it all: arrays of JSON and of bytes would each need an escaping of their own. */
const toJson = (settlements: readonly Settlement[]) =>
  JSON.stringify(
    settlements.map(({ id, amount, meta, event, organizationId }) => ({
      ...{ ...membersOf(event), organization_id: organizationId, id, amount: String(amount), meta },
    })),
  )

const membersOf = (event: Event) => ({
  ...{ organization_id: event.organizationId, event_id: event.id, day: event.day },
  ...{ shard: event.shard, kind: event.kind, at: event.at, header: event.header },
  ...{ payload: toHex(event.payload), salt: toHex(event.salt) },
  payload_hash: toHex(event.payloadHash),
})

const toHex = (bytes: Buffer) => `\\x${bytes.toString('hex')}`

/** The sums that charts ask for move with the entries they sum up, on the day that stands in the entry. */
export const summedByDay = sql`
  days as (
    insert into usage_day as so_far (organization_id, day, project_id, key_id, model,
      requests, input_tokens, output_tokens, credits)
    select organization_id, (at at time zone 'UTC')::date, coalesce(project_id, ''),
      meta->>'key_id', meta->>'model', count(*), sum((meta->>'input_tokens')::bigint),
      sum((meta->>'output_tokens')::bigint), sum(amount)
    from entries where kind <> 'writeoff' group by 1, 2, 3, 4, 5
    on conflict (organization_id, day, project_id, key_id, model) do update set
      requests = so_far.requests + excluded.requests,
      input_tokens = so_far.input_tokens + excluded.input_tokens,
      output_tokens = so_far.output_tokens + excluded.output_tokens,
      credits = so_far.credits + excluded.credits
  )`

/** A call is told when it is charged, and only then. */
export const told = sql`
  told as (${insertEvents(sql`asked join charged using (organization_id, id)`)})`

/** Tells of many calls at once. */
export async function tellEvents(tx: Tx, events: readonly Event[]) {
  const rows = JSON.stringify(events.map(membersOf))
  const told = sql`jsonb_to_recordset(${rows}::jsonb) as (organization_id text, ${eventColumns})`
  await insertEvents(told).execute(tx)
}
