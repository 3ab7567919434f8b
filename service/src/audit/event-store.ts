import { CompiledQuery } from 'kysely'

import type { Db } from '#platform/database.ts'

import type { Event } from './event.ts'

// The table `event` is written by the statements below, by those that embed their text, and by the functions
// that move credits (migrations/0014 and 0031), whose events commit with a charge.

/** The columns of an event as `jsonb_to_recordset` reads them from `toEventRecord`. */
export const eventColumns = `event_id uuid, day date, shard smallint, kind text, at timestamptz,
  header jsonb, payload bytea, salt bytea, payload_hash bytea`

/** An event as a record of `eventColumns` and `organization_id`, ready for JSON. */
export const toEventRecord = (event: Event) => ({
  organization_id: event.organizationId,
  event_id: event.id,
  day: event.day,
  shard: event.shard,
  kind: event.kind,
  at: event.at,
  header: event.header,
  payload: toHex(event.payload),
  salt: toHex(event.salt),
  payload_hash: toHex(event.payloadHash),
})

const toHex = (bytes: Buffer) => `\\x${bytes.toString('hex')}`

/** Inserts one event for each row, in one order everywhere: two processes may deliver the same file. An event that is repeated is there already. */
export const insertEventsFrom = (rows: 'records' | 'settlements') => `
  insert into event (day, id, shard, organization_id, kind, at, header, payload, salt, payload_hash)
  select day, event_id, shard, organization_id, kind, at, header, payload, salt, payload_hash
  from ${rows} order by day, event_id on conflict do nothing`

const insertStatement = `
  with records as (
    select * from jsonb_to_recordset($1::jsonb) as (organization_id text, ${eventColumns})
  ) ${insertEventsFrom('records')}`

export async function insertEvents(db: Db, events: readonly Event[]) {
  if (events.length === 0) return
  const records = JSON.stringify(events.map(toEventRecord))
  await db.executeQuery(CompiledQuery.raw(insertStatement, [records]))
}
