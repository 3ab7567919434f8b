import { sql } from 'kysely'

import type { StoredObject } from '#exports/destinations/destination.ts'
import { sinkColumns } from '#exports/sinks/sink-store.ts'
import type { Sink } from '#exports/sinks/sink.ts'
import { type Db, executeNamed, type Tx } from '#platform/database.ts'

/** Longer than sending a batch may take. */
const leaseSeconds = 30

/** A cursor that a worker may move, and the sink that it belongs to. */
export type DeliveryLease = {
  cursorId: string
  /** Each lease has its own, so that a worker which was too slow cannot write under a later lease of its own. */
  owner: string
  isReplay: boolean
  orgSeq: number
  endSeq: number | null
  signedSize: number
  /** No entry of the log after `orgSeq` is older. */
  day: string
  plannedTo: number | null
  batchMax: number | null
  attempt: number
  sink: Sink
}

type Row = Omit<DeliveryLease, 'sink'> & Sink

export type Wanted = {
  isFailing: boolean
  limit: number
  /** How many cursors of an organization are leased at a time, by all workers together. */
  perOrganization: number
}

/**
 * Leases cursors that have something to send and whose time has come. Organizations with the fewest leases come first, and of those
 * with equally many the cursor that has waited longest.
 * Those that fail are leased separately, so that waiting for dead destinations takes no time from the others. Workers that lease at
 * the same moment do not see what the others take, so an organization may have a few more for a while.
 */
export async function leaseCursors(db: Db, wanted: Wanted): Promise<DeliveryLease[]> {
  const { isFailing, limit, perOrganization } = wanted
  const query = sql<Row>`
    with busy as (
      select organization_id, count(*) as leases from export_cursor
      where lease_until > now() and (attempt > 0) = ${isFailing}
      group by organization_id
    ), due as (
      select c.id, c.organization_id,
        row_number() over (partition by c.organization_id order by c.next_at) as place
      from export_cursor as c
      join export_sink as s on s.id = c.sink_id and s.enabled
      left join audit_head as h on h.organization_id = c.organization_id
      where c.next_at <= now() and (c.lease_until is null or c.lease_until <= now())
        and (c.attempt > 0) = ${isFailing}
        and (
          c.is_replay or h.org_seq > c.org_seq or h.signed_size > c.signed_size
          or exists (
            select from export_object as o
            where o.sink_id = c.sink_id and o.at < date_trunc('hour', now(), 'UTC')
          )
        )
    ), taken as (
      select c.id from export_cursor as c
      join due on due.id = c.id
      left join busy on busy.organization_id = due.organization_id
      where due.place + coalesce(busy.leases, 0) <= ${perOrganization}
        and (c.lease_until is null or c.lease_until <= now())
      order by due.place + coalesce(busy.leases, 0), c.next_at limit ${limit}
      for update of c skip locked
    ), leased as (
      update export_cursor as c
      set lease_owner = gen_random_uuid(), lease_until = now() + make_interval(secs => ${leaseSeconds})
      from taken where c.id = taken.id
      returning c.*
    )
    select c.id as "cursorId", c.lease_owner as owner, c.is_replay as "isReplay", c.org_seq::float8 as "orgSeq", c.end_seq::float8 as "endSeq",
      c.signed_size::float8 as "signedSize", c.day::text as day, c.planned_to::float8 as "plannedTo",
      c.batch_max as "batchMax", c.attempt,
      ${sinkColumns}
    from leased as c join export_sink as s on s.id = c.sink_id
    order by c.next_at`
  const rows = await executeNamed(db, 'lease_cursors', query)
  return rows.map((row) => ({ ...row, sink: row }))
}

/** What a worker may write about a cursor. Undefined members stay as they are. */
export type CursorChange = {
  orgSeq?: number
  day?: string
  signedSize?: number
  plannedTo?: number | null
  batchMax?: number | null
}

const named = ({ orgSeq, day, signedSize, plannedTo, batchMax }: CursorChange) => ({
  ...(orgSeq !== undefined && { org_seq: orgSeq }),
  ...(day !== undefined && { day }),
  ...(signedSize !== undefined && { signed_size: signedSize }),
  ...(plannedTo !== undefined && { planned_to: plannedTo }),
  ...(batchMax !== undefined && { batch_max: batchMax }),
})

/** Throws if another worker has the cursor, or the sink was changed or deleted: what was sent is sent again. */
async function update(
  db: Db,
  { cursorId, owner }: DeliveryLease,
  members: Record<string, unknown>,
) {
  const { numUpdatedRows } = await db
    .updateTable('export_cursor')
    .set(members as never)
    .where('id', '=', cursorId)
    .where('lease_owner', '=', owner)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) throw new LeaseLost()
}

/** Another worker has the cursor, or its sink was changed or deleted. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

const renewed = sql`now() + make_interval(secs => ${leaseSeconds})`

/** Changes how much is sent; what will be sent is noted, so that a retry sends the same, also by another worker. */
export const changeCursor = (db: Db, lease: DeliveryLease, change: CursorChange) =>
  update(db, lease, { ...named(change), lease_until: renewed })

export const recordSuccess = (tx: Tx, lease: DeliveryLease, change: CursorChange) =>
  update(tx, lease, {
    ...named(change),
    attempt: 0,
    state: 'ok',
    last_success_at: sql`now()`,
    lease_until: renewed,
  })

export type Failure = { error: string; state: 'retrying' | 'error'; waitMs: number }

/** Ends the lease as well. */
export const recordFailure = (
  db: Db,
  lease: DeliveryLease,
  { error, state, waitMs }: Failure,
  change: CursorChange = {},
) =>
  update(db, lease, {
    ...named(change),
    attempt: sql`attempt + 1`,
    state,
    last_error: error,
    last_error_at: sql`now()`,
    next_at: sql`now() + make_interval(secs => ${waitMs / 1000})`,
    lease_owner: null,
    lease_until: null,
  })

/** Shows an error with the sink, although its delivery goes on. */
export const showError = (tx: Tx, lease: DeliveryLease, error: string) =>
  update(tx, lease, { last_error: error, last_error_at: sql`now()` })

/** Gives the cursor back. */
export const release = (db: Db, lease: DeliveryLease, waitMs = 0) =>
  update(db, lease, {
    next_at: sql`now() + make_interval(secs => ${waitMs / 1000})`,
    lease_owner: null,
    lease_until: null,
  })

export async function deleteCursor(db: Db, { cursorId, owner }: DeliveryLease) {
  await db
    .deleteFrom('export_cursor')
    .where('id', '=', cursorId)
    .where('lease_owner', '=', owner)
    .execute()
}

/** An object that is stored again replaces itself. */
export async function addObject(tx: Tx, sinkId: string, object: StoredObject) {
  const { key, sha256, bytes, first, last } = object
  await sql`
    insert into export_object (sink_id, key, sha256, bytes, first_seq, last_seq, at)
    values (${sinkId}, ${key}, ${sha256}, ${bytes}, ${first}, ${last}, now())
    on conflict (sink_id, key) do update
      set sha256 = excluded.sha256, bytes = excluded.bytes, at = excluded.at`.execute(tx)
}
