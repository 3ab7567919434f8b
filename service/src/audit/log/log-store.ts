import { sql } from 'kysely'

import { type Db, runNamed, type Tx } from '#platform/database.ts'

import { splitHashes, type Tree } from './merkle.ts'

/** How far the events of a shard have been numbered. */
export type Cursor = {
  xid: string
  seq: string
  /** Events up to this transaction may have come with a dump from another server, and have numbers. */
  restoredXid: string | null
  /** The day of the database's clock. */
  today: string
}

const cursorColumns = sql`
  xid::text as xid, seq, restored_xid::text as "restoredXid", (now() at time zone 'UTC')::date::text as today`

/**
 * Locks the cursor of a shard until the transaction ends. Undefined: another worker holds it, or it is stopped.
 *
 * The transaction does not sort. Of a partition that was begun today PostgreSQL knows no numbers yet, and would read and sort all
 * events that wait, for each thousand of them, instead of taking the first ones out of the index.
 */
export async function lockCursor(tx: Tx, shard: number): Promise<Cursor | undefined> {
  const { rows } = await sql<Cursor>`
    select ${cursorColumns}, set_config('enable_sort', 'off', true)
    from audit_cursor where shard = ${shard} and not is_stopped for update skip locked`.execute(tx)
  return rows[0]
}

export type CommittedEvent = {
  id: string
  day: string
  xid: string
  seq: string
  organizationId: string
  kind: 'revision' | 'enforcement' | 'simulation'
  at: Date
  header: Record<string, never>
  payloadHash: Buffer
  /** It came with a dump, and has a number. */
  isNumbered: boolean
}

const eventColumns = sql`
  id, day::text as day, xid::text as xid, seq, organization_id as "organizationId", kind, at, header,
  payload_hash as "payloadHash"`

const hasEntry = sql<boolean>`exists (select from audit_log as entry where entry.event_id = event.id)`

/**
 * The next events of a shard, in an order that never changes. Sequences run ahead of commits, so an event is only read once every
 * transaction that could still commit before it has ended.
 */
export async function listCommittedEvents(
  tx: Tx,
  shard: number,
  { xid, seq, restoredXid }: Cursor,
  limit: number,
): Promise<CommittedEvent[]> {
  const isNumbered =
    restoredXid === null ? sql`false` : sql`event.xid <= ${restoredXid}::text::xid8 and ${hasEntry}`
  const { rows } = await sql<CommittedEvent>`
    select ${eventColumns}, ${isNumbered} as "isNumbered"
    from event
    where shard = ${shard} and (xid, seq) > (${xid}::text::xid8, ${seq}::bigint)
      and xid < pg_snapshot_xmin(pg_current_snapshot())
    order by event.xid, event.seq limit ${limit}`.execute(tx)
  return rows
}

/** Prepared, because every worker asks once a second, and planning for a month of partitions takes longer than the answer. */
const shardsWithNews = {
  name: 'audit_shards_with_news',
  text: `
    select done.shard from audit_cursor as done cross join lateral (
      select from event
      where event.shard = done.shard and (event.xid, event.seq) > (done.xid, done.seq)
        and event.xid < pg_snapshot_xmin(pg_current_snapshot())
      limit 1
    ) as news where not done.is_stopped`,
}

/** The shards that have events without a number. */
export async function findShardsWithNews(db: Db): Promise<number[]> {
  const rows = await runNamed<[shard: number]>(db, shardsWithNews, [])
  return rows.map(([shard]) => shard)
}

/**
 * Whether the cursor `done`, or an event of its shard, has a transaction number that this server has not given yet: the database
 * was moved here from another one.
 */
export const isOfOtherServer = sql<boolean>`(
  done.xid >= pg_snapshot_xmax(pg_current_snapshot()) or exists (
    select from event
    where event.shard = done.shard and event.xid >= pg_snapshot_xmax(pg_current_snapshot())
      and event.xid > coalesce(done.restored_xid, '0'::xid8)
  )
)`

/** Stops the cursors of another server, until the operator resumes them. Returns whether any is stopped. */
export async function stopCursorsOfOtherServer(db: Db): Promise<boolean> {
  await sql`
    update audit_cursor as done set is_stopped = true
    where not is_stopped and ${isOfOtherServer}`.execute(db)
  return (await sql`select from audit_cursor where is_stopped limit 1`.execute(db)).rows.length > 0
}

/** A cursor that is waited for, and the oldest transaction that may still commit. */
export type HeldCursor = Cursor & { horizon: string }

/** Statements of the transaction may take their time: they look at every event that is kept. */
export async function holdCursor(tx: Tx, shard: number): Promise<HeldCursor> {
  await sql`select set_config('statement_timeout', '0', true)`.execute(tx)
  const { rows } = await sql<HeldCursor>`
    select ${cursorColumns}, pg_snapshot_xmin(pg_current_snapshot())::text as horizon
    from audit_cursor where shard = ${shard} for update`.execute(tx)
  const [cursor] = rows
  if (!cursor) throw new Error(`There is no cursor of shard ${shard}.`)
  return cursor
}

/**
 * Events without an entry that nothing can overtake any more: first those that came with a dump. Events that can be seen although
 * this server has not given their transaction numbers yet are of another one.
 */
export async function listUnnumberedEvents(
  tx: Tx,
  shard: number,
  { xid, seq, horizon }: HeldCursor,
  limit: number,
): Promise<CommittedEvent[]> {
  const { rows } = await sql<CommittedEvent>`
    select ${eventColumns}, false as "isNumbered"
    from event
    where shard = ${shard} and not ${hasEntry}
      and (xid < ${horizon}::text::xid8 or xid >= pg_snapshot_xmax(pg_current_snapshot()))
    order by (event.xid, event.seq) > (${xid}::text::xid8, ${seq}::bigint) desc, event.xid, event.seq
    limit ${limit}`.execute(tx)
  return rows
}

/** Every event of the shard has a number. */
export async function restartCursor(tx: Tx, shard: number) {
  await sql`update audit_cursor set is_stopped = false where shard = ${shard}`.execute(tx)
}

/** From now on events that this server did not write are numbered only if they have no entry. */
export async function markRestored(tx: Tx, shard: number) {
  await sql`
    update audit_cursor as done set restored_xid = greatest(done.restored_xid, done.xid, (
      select event.xid from event where event.shard = done.shard order by event.xid desc limit 1
    )) where shard = ${shard}`.execute(tx)
}

export type Head = { tree: Tree; day: string }

export async function findHeads(
  tx: Tx,
  organizationIds: readonly string[],
): Promise<Map<string, Head>> {
  const { rows } = await sql<{ id: string; size: string; day: string; frontier: Buffer }>`
    select organization_id as id, org_seq as size, day::text as day, frontier
    from audit_head where organization_id = any(${organizationIds})`.execute(tx)
  return new Map(
    rows.map(({ id, size, day, frontier }) => [
      id,
      { tree: { size: Number(size), frontier: splitHashes(frontier) }, day },
    ]),
  )
}

export type LogEntry = {
  day: string
  organizationId: string
  orgSeq: number
  eventDay: string
  eventId: string
  leaf: Buffer
}

export async function insertEntries(tx: Tx, entries: readonly LogEntry[]) {
  const column = (read: (entry: LogEntry) => unknown) => entries.map(read)
  await sql`
    insert into audit_log (day, organization_id, org_seq, event_day, event_id, leaf)
    select * from unnest(
      ${column((entry) => entry.day)}::date[], ${column((entry) => entry.organizationId)}::text[],
      ${column((entry) => entry.orgSeq)}::bigint[], ${column((entry) => entry.eventDay)}::date[],
      ${column((entry) => entry.eventId)}::uuid[], ${column((entry) => entry.leaf)}::bytea[]
    )`.execute(tx)
}

export type HeadChange = { organizationId: string; before: Tree | undefined; after: Head }

/** Throws if a head is not where it was read: another worker has numbered events of the organization at the same time. */
export async function moveHeads(tx: Tx, changes: readonly HeadChange[]) {
  const column = (read: (change: HeadChange) => unknown) => changes.map(read)
  const { rows } = await sql`
    insert into audit_head as head (organization_id, org_seq, day, frontier, signed_size)
    select * from unnest(
      ${column((change) => change.organizationId)}::text[],
      ${column((change) => change.after.tree.size)}::bigint[],
      ${column((change) => change.after.day)}::date[],
      ${column((change) => Buffer.concat(change.after.tree.frontier))}::bytea[],
      ${column((change) => change.before?.size ?? 0)}::bigint[]
    )
    -- The size before is 0 in a new row, as it has to be. A row that exists is only compared with it.
    on conflict (organization_id) do update
      set org_seq = excluded.org_seq, day = excluded.day, frontier = excluded.frontier
      where head.org_seq = excluded.signed_size
    returning organization_id`.execute(tx)
  if (rows.length !== changes.length) {
    throw new Error('Another worker has numbered events of the same organization.')
  }
}

export async function moveCursor(tx: Tx, shard: number, { xid, seq }: Pick<Cursor, 'xid' | 'seq'>) {
  await sql`
    update audit_cursor set xid = ${xid}::text::xid8, seq = ${seq}::bigint where shard = ${shard}`.execute(
    tx,
  )
}
