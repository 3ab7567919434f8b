import { sql } from 'kysely'

import type { Db } from '#platform/database.ts'
import { type BoundedPage, readBoundedPage } from '#platform/keyset.ts'

import { bytesOfEvent } from './event-list-store.ts'

/** An event with its number. */
export type NumberedEvent = {
  orgSeq: number
  leaf: Buffer
  id: string
  day: string
  kind: string
  organizationId: string
  at: Date
  header: Record<string, unknown>
  /** Null if it was erased, and its salt with it. */
  payload: Buffer | null
  salt: Buffer | null
  payloadHash: Buffer
}

/** An entry of the log. Its event is null if it was dropped, because it was too old. */
export type Entry = { orgSeq: number; day: string; event: NumberedEvent | null }

type Row = Omit<NumberedEvent, 'orgSeq' | 'kind'> & {
  orgSeq: string
  entryDay: string
  kind: string | null
}

export type EntryRange = {
  after: number
  /** The last number that may be read. */
  to?: number | undefined
  /** No entry after `after` is older: fewer partitions have to be looked at. */
  since?: string | undefined
  /** Entries outlive their events for a while: only those whose events are still there. */
  isKept?: boolean | undefined
  limit: number
  /** How many bytes the events may have together. The first one may have more, unless the page may be empty. */
  bytesMax?: number
  mayBeEmpty?: boolean
}

/** The entries of an organization in the order of their numbers. Each event is looked up by its key, in the partition of its day. */
export async function listEntries(
  db: Db,
  organizationId: string,
  { after, to, since, isKept = false, limit, ...bounds }: EntryRange,
): Promise<BoundedPage<Entry>> {
  const conditions = [
    sql`organization_id = ${organizationId}`,
    sql`org_seq > ${after}`,
    ...(to === undefined ? [] : [sql`org_seq <= ${to}`]),
    ...(since === undefined ? [] : [sql`day >= ${since}::date`]),
  ]
  const entries = sql`
    select entry.org_seq as "orgSeq", entry.leaf, entry.event_id as id, entry.day::text as "entryDay",
      entry.event_day::text as day, ${organizationId}::text as "organizationId",
      event.kind, event.at, event.header, event.payload, event.salt, event.payload_hash as "payloadHash",
      coalesce(event.bytes, 0) as bytes
    from (
      select * from audit_log where ${sql.join(conditions, sql` and `)}
      order by org_seq ${isKept ? sql`` : sql`limit ${limit + 1}`}
    ) as entry
    left join lateral (
      select kind, at, header, payload, salt, payload_hash, ${bytesOfEvent} as bytes from event
      where event.day = entry.event_day and event.id = entry.event_id offset 0
    ) as event on true
    where ${isKept ? sql`event.kind is not null` : sql`true`}
    order by entry.org_seq limit ${limit + 1}`
  const { rows, hasMore } = await readBoundedPage<Row>(db, entries, {
    orderBy: sql`"orgSeq"`,
    limit,
    ...bounds,
  })
  return { rows: rows.map(toEntry), hasMore }
}

function toEntry({ entryDay, kind, ...event }: Row): Entry {
  const orgSeq = Number(event.orgSeq)
  return { orgSeq, day: entryDay, event: kind === null ? null : { ...event, kind, orgSeq } }
}

/** The number of an event, by its id. */
export async function findOrgSeq(
  db: Db,
  organizationId: string,
  eventId: string,
): Promise<number | undefined> {
  const { rows } = await sql<{ orgSeq: string }>`
    select org_seq as "orgSeq" from audit_log
    where event_id = ${eventId}::uuid and organization_id = ${organizationId}`.execute(db)
  return rows[0] && Number(rows[0].orgSeq)
}
