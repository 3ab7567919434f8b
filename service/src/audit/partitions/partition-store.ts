import { sql } from 'kysely'

import { isOfOtherServer } from '#audit/log/log-store.ts'
import type { Db, Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

// The functions are in migrations/0020. Days are those of the database's clock: a worker whose own clock is wrong must not
// drop what is new.

/** Inserts queue behind our lock request, so it is given up soon, and made again at the next attempt. */
const lockWait = '200ms'

/** Makes the partitions from yesterday on. What is in the default partition gets one of its own first. */
export async function makePartitions(db: Db, daysAhead: number) {
  await alone(db, async (tx) => {
    await sql`select date_default_partition()`.execute(tx)
    // A day that the default partition still has cannot get a partition.
    await sql`
      select make_event_partition(day)
      from (
        select (now() at time zone 'UTC')::date + days as day from generate_series(-1, ${daysAhead}::integer) as days
      ) as wanted
      where not exists (select from event_default where event_default.day = wanted.day)`.execute(tx)
    await sql`
      select make_audit_log_partition((now() at time zone 'UTC')::date + days)
      from generate_series(0, ${daysAhead}::integer) as days`.execute(tx)
  })
}

/** Days of events that are dropped, from the first up to the day before `end`. */
export type DroppedDays = { first: string; end: string }

/** Called in the transaction that drops events, before they are gone. */
export type BeforeDrop = (tx: Tx, days: DroppedDays) => Promise<void>

/**
 * Drops the oldest partition that has nothing of the last `days`. Returns its name, or undefined if there is none. A partition with
 * events that have no number in the audit log yet is kept.
 */
export async function dropOldPartition(
  db: Db,
  days: number,
  beforeDrop: BeforeDrop,
): Promise<string | undefined> {
  return alone(db, async (tx) => {
    const { rows } = await sql<DroppedDays & { name: string }>`
      select name, first_day::text as first, end_day::text as end from event_partition
      where end_day <= (now() at time zone 'UTC')::date - ${days}::integer
      order by end_day limit 1`.execute(tx)
    const [oldest] = rows
    if (!oldest || (await hasUnnumbered(tx, oldest))) return undefined
    await beforeDrop(tx, oldest)
    await sql`select drop_event_partition(${oldest.name})`.execute(tx)
    return oldest.name
  })
}

/** Events of another server that this one has taken over have numbers, and are ahead of the cursor for as long as they are kept. */
async function hasUnnumbered(tx: Tx, { first, end }: DroppedDays): Promise<boolean> {
  const { rows } = await sql`
    select from audit_cursor as done where done.is_stopped or ${sql.raw(isOfOtherServer)} or exists (
      select from event
      where event.day >= ${first}::date and event.day < ${end}::date
        and event.shard = done.shard and (event.xid, event.seq) > (done.xid, done.seq)
        and event.xid < pg_snapshot_xmax(pg_current_snapshot())
    )`.execute(tx)
  return rows.length > 0
}

/**
 * Drops the oldest day of the audit log, unless it is one of the last `days` or its leaves have still to be put into tiles. Never a
 * later one: leaves are kept in their order.
 */
export async function dropOldLogPartition(db: Db, days: number): Promise<string | undefined> {
  return alone(db, async (tx) => {
    const { rows } = await sql<{ name: string; day: string }>`
      select relname as name, right(relname, 8) as day
      from pg_inherits join pg_class on pg_class.oid = inhrelid
      where inhparent = 'audit_log'::regclass and relname ~ '^audit_log_[0-9]{8}$'
        and right(relname, 8)::date < (now() at time zone 'UTC')::date - ${days}::integer
      order by relname limit 1`.execute(tx)
    const [oldest] = rows
    if (!oldest || (await hasUntiledLeaves(tx, oldest.day))) return undefined
    await sql`select drop_audit_log_partition(${oldest.name})`.execute(tx)
    return oldest.name
  })
}

async function hasUntiledLeaves(tx: Tx, day: string): Promise<boolean> {
  const { rows } = await sql`
    select from audit_head as head
    where head.org_seq >= head.tiled_size + 256 and exists (
      select from audit_log as entry
      where entry.day = ${day}::date and entry.organization_id = head.organization_id
        and entry.org_seq > head.tiled_size
    ) limit 1`.execute(tx)
  return rows.length > 0
}

/** Two workers at once would make the same partition. */
const alone = <T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> =>
  transact(db, async (tx) => {
    await sql`select set_config('lock_timeout', ${lockWait}, true)`.execute(tx)
    await sql`select pg_advisory_xact_lock(hashtext('gatehouse_event_partitions'))`.execute(tx)
    return work(tx)
  })
