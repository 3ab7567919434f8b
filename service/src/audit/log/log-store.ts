import { type Db, type LocalSettings, type NamedTx, runNamed } from '#platform/database.ts'

// Every statement has a name: workers run them several times in a second, and planning them for a month of partitions takes
// PostgreSQL longer than running them.

/** Each organization has one of these shards, and each shard one cursor. */
export const shards: readonly number[] = Array.from({ length: 16 }, (_, shard) => shard)

/**
 * The transaction does not sort. Of a partition that was begun today PostgreSQL knows no numbers yet, and would read and sort all
 * events that wait, for each thousand of them, instead of taking the first ones out of the index. A plan for any values, made once,
 * is as good as one for these values; and it is not compiled, which a plan over many partitions may look costly enough for.
 *
 * It waits briefly for a head that is locked: events that are written meanwhile get no numbers before it has ended.
 */
export const numberingSettings: LocalSettings = {
  enable_sort: 'off',
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
  lock_timeout: '500ms',
}

/** Where in its shard an event stands. */
export type LogPosition = { shard: number; xid: string; seq: string }

/** Events after the cursor `done` that nothing can overtake any more. */
const isNews = `
  event.shard = done.shard and (event.xid, event.seq) > (done.xid, done.seq)
  and event.xid < (select pg_snapshot_xmin(pg_current_snapshot()))`

const newsStatement = {
  name: 'audit_shards_with_news',
  text: `
    select done.shard from audit_cursor as done cross join lateral (
      select from event where ${isNews} order by event.xid, event.seq limit 1
    ) as news
    where done.shard = any($1::smallint[]) and not done.is_stopped`,
}

/** Those of the shards that have events without a number. */
export async function findShardsWithNews(tx: NamedTx, among: readonly number[]): Promise<number[]> {
  const rows = await tx.run<[shard: number]>(newsStatement, [among])
  return rows.map(([shard]) => shard)
}

const lockStatement = {
  name: 'audit_lock_cursors',
  text: `
    select shard, (now() at time zone 'UTC')::date::text
    from audit_cursor where shard = any($1::smallint[]) and not is_stopped
    order by shard for update skip locked`,
}

/** Locks cursors until the transaction ends, except those that another worker holds. `today` is the day of the database's clock. */
export async function lockCursors(
  tx: NamedTx,
  wanted: readonly number[],
): Promise<{ locked: number[]; today: string }> {
  const rows = await tx.run<[shard: number, today: string]>(lockStatement, [wanted])
  return { locked: rows.map(([shard]) => shard), today: rows[0]?.[1] ?? '' }
}

const tryLocksStatement = {
  name: 'audit_try_locks',
  text: 'lock table audit_log, audit_head in row exclusive mode',
}
const tryWritingStatement = {
  name: 'audit_try_writing',
  text: `
    update audit_cursor set seq = seq
    where shard = (select shard from audit_cursor order by shard limit 1 for update skip locked)`,
}

/** Changes nothing. Fails where no shard can be numbered: on a standby, and while a day of the log is dropped. */
export async function tryWriting(tx: NamedTx) {
  await tx.run(tryLocksStatement, [])
  await tx.run(tryWritingStatement, [])
}

export type CommittedEvent = LogPosition & {
  id: string
  day: string
  organizationId: string
  kind: 'revision' | 'enforcement' | 'simulation'
  at: Date
  header: Record<string, never>
  payloadHash: Buffer
  /** It came with a dump, and has a number. */
  isNumbered: boolean
}

type EventRow = [
  id: string,
  day: string,
  shard: number,
  xid: string,
  seq: string,
  organizationId: string,
  kind: CommittedEvent['kind'],
  at: Date,
  header: CommittedEvent['header'],
  payloadHash: Buffer,
  isNumbered: boolean,
]

const eventColumns = `
  event.id, event.day::text, event.shard, event.xid::text, event.seq, event.organization_id, event.kind, event.at, event.header,
  event.payload_hash`

function fromRow(row: EventRow): CommittedEvent {
  const [id, day, shard, xid, seq, organizationId, kind, at, header, payloadHash, isNumbered] = row
  return { id, day, shard, xid, seq, organizationId, kind, at, header, payloadHash, isNumbered }
}

// Not `exists`, which PostgreSQL may answer from a table of all entries that it makes first.
const hasEntry = `coalesce((select true from audit_log as entry where entry.event_id = event.id limit 1), false)`

const listStatement = {
  name: 'audit_list_committed',
  text: `
    select ${eventColumns}, case when event.xid <= done.restored_xid then ${hasEntry} else false end
    from audit_cursor as done cross join lateral (
      select * from event where ${isNews} order by event.xid, event.seq limit $2::integer
    ) as event
    where done.shard = any($1::smallint[])`,
}

/**
 * The next events of each shard, in an order that never changes. Sequences run ahead of commits, so an event is only read once every
 * transaction that could still commit before it has ended. The caller holds the cursors.
 */
export async function listCommittedEvents(
  tx: NamedTx,
  locked: readonly number[],
  limitPerShard: number,
): Promise<CommittedEvent[]> {
  const rows = await tx.run<EventRow>(listStatement, [locked, limitPerShard])
  // They come in this order, which the statement does not promise, and its transaction should not sort.
  return rows.map(fromRow).toSorted(byPosition)
}

const byPosition = (one: LogPosition, other: LogPosition): number =>
  one.shard - other.shard ||
  Number(BigInt(one.xid) - BigInt(other.xid)) ||
  Number(BigInt(one.seq) - BigInt(other.seq))

/**
 * Whether the cursor `done`, or an event of its shard, has a transaction number that this server has not given yet: the database
 * was moved here from another one.
 */
export const isOfOtherServer = `(
  done.xid >= pg_snapshot_xmax(pg_current_snapshot()) or exists (
    select from event
    where event.shard = done.shard and event.xid >= pg_snapshot_xmax(pg_current_snapshot())
      and event.xid > coalesce(done.restored_xid, '0'::xid8)
  )
)`

const stopStatement = {
  name: 'audit_stop_cursors',
  text: `
    update audit_cursor as done set is_stopped = true where not is_stopped and ${isOfOtherServer}`,
}

const stoppedStatement = {
  name: 'audit_stopped_cursors',
  text: 'select shard from audit_cursor where is_stopped limit 1',
}

/** Stops the cursors of another server, until the operator resumes them. Returns whether any is stopped. */
export async function stopCursorsOfOtherServer(db: Db): Promise<boolean> {
  await runNamed(db, stopStatement, [])
  return (await runNamed(db, stoppedStatement, [])).length > 0
}

/** A cursor that is waited for, the day of the database's clock, and the oldest transaction that may still commit. */
export type HeldCursor = LogPosition & { today: string; horizon: string }

const holdStatement = {
  name: 'audit_hold_cursor',
  text: `
    select xid::text, seq, (now() at time zone 'UTC')::date::text,
      pg_snapshot_xmin(pg_current_snapshot())::text
    from audit_cursor where shard = $1::smallint for update`,
}

export async function holdCursor(tx: NamedTx, shard: number): Promise<HeldCursor> {
  const [row] = await tx.run<[xid: string, seq: string, today: string, horizon: string]>(
    holdStatement,
    [shard],
  )
  if (!row) throw new Error(`There is no cursor of shard ${shard}.`)
  const [xid, seq, today, horizon] = row
  return { shard, xid, seq, today, horizon }
}

const unnumberedStatement = {
  name: 'audit_list_unnumbered',
  text: `
    select ${eventColumns}, false
    from event
    where shard = $1::smallint and not exists (select from audit_log as entry where entry.event_id = event.id)
      and (xid < $4::text::xid8 or xid >= pg_snapshot_xmax(pg_current_snapshot()))
    order by (event.xid, event.seq) > ($2::text::xid8, $3::bigint) desc, event.xid, event.seq
    limit $5::integer`,
}

/**
 * Events without an entry that nothing can overtake any more: first those that came with a dump. Events that can be seen although
 * this server has not given their transaction numbers yet are of another one.
 */
export async function listUnnumberedEvents(
  tx: NamedTx,
  { shard, xid, seq, horizon }: HeldCursor,
  limit: number,
): Promise<CommittedEvent[]> {
  const rows = await tx.run<EventRow>(unnumberedStatement, [shard, xid, seq, horizon, limit])
  return rows.map(fromRow)
}

const markStatement = {
  name: 'audit_mark_restored',
  text: `
    update audit_cursor as done set restored_xid = greatest(done.restored_xid, done.xid, (
      select event.xid from event where event.shard = done.shard order by event.xid desc limit 1
    )) where shard = $1::smallint`,
}

/** From now on events that this server did not write are numbered only if they have no entry. */
export async function markRestored(tx: NamedTx, shard: number) {
  await tx.run(markStatement, [shard])
}

const restartStatement = {
  name: 'audit_restart_cursor',
  text: `
    update audit_cursor set xid = $2::text::xid8, seq = $3::bigint, is_stopped = false
    where shard = $1::smallint`,
}

/** Every event of the shard up to this position has a number. */
export async function restartCursor(tx: NamedTx, { shard, xid, seq }: LogPosition) {
  await tx.run(restartStatement, [shard, xid, seq])
}
