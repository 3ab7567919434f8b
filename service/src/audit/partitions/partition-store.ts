import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

// The functions are in migrations/0020. Days are those of the database's clock: a worker whose own clock is wrong must not
// drop what is new.

/** Writers wait behind whoever waits for a lock. What cannot be done in time is done at the next attempt. */
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
  })
}

/** Drops the oldest partition that has nothing of the last `days`. Returns its name, or undefined if there is none. */
export async function dropOldPartition(db: Db, days: number): Promise<string | undefined> {
  return alone(db, async (tx) => {
    const { rows } = await sql<{ name: string }>`
      select name from event_partition
      where end_day <= (now() at time zone 'UTC')::date - ${days}::integer
      order by end_day limit 1`.execute(tx)
    const name = rows[0]?.name
    if (name !== undefined) await sql`select drop_event_partition(${name})`.execute(tx)
    return name
  })
}

/** Two workers at once would make the same partition. */
const alone = <T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> =>
  transact(db, async (tx) => {
    await sql`select set_config('lock_timeout', ${lockWait}, true)`.execute(tx)
    await sql`select pg_advisory_xact_lock(hashtext('gatehouse_event_partitions'))`.execute(tx)
    return work(tx)
  })
