import type { NamedTx } from '#platform/database.ts'
import { binaryArray, plainArray } from '#platform/statements/array-values.ts'

import type { LogPosition } from './log-store.ts'
import { readTree, type Tree } from './merkle.ts'

export type LogHead = { tree: Tree; day: string }

const headsStatement = {
  name: 'audit_find_heads',
  text: `
    select organization_id, org_seq, day::text, frontier
    from audit_head where organization_id = any($1::text[])`,
}

export async function findHeads(
  tx: NamedTx,
  organizationIds: readonly string[],
): Promise<Map<string, LogHead>> {
  type Row = [organizationId: string, size: string, day: string, frontier: Buffer]
  const rows = await tx.run<Row>(headsStatement, [binaryArray('text', organizationIds)])
  return new Map(
    rows.map(([id, size, day, frontier]) => [id, { tree: readTree(Number(size), frontier), day }]),
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

export type HeadChange = { organizationId: string; before: Tree | undefined; after: LogHead }

export type Appended = {
  entries: readonly LogEntry[]
  heads: readonly HeadChange[]
  /** The last event of each shard that has a number now. */
  cursors: readonly LogPosition[]
}

const appendStatement = {
  name: 'audit_append',
  text: `
    with entries as (
      insert into audit_log (day, organization_id, org_seq, event_day, event_id, leaf)
      select * from unnest($1::date[], $2::text[], $3::bigint[], $4::date[], $5::uuid[], $6::bytea[])
    ), cursors as (
      update audit_cursor as done set xid = moved.xid, seq = moved.seq
      from unnest($7::smallint[], $8::text[]::xid8[], $9::bigint[]) as moved (shard, xid, seq)
      where done.shard = moved.shard
    )
    insert into audit_head as head (organization_id, org_seq, day, frontier, signed_size)
    select * from unnest($10::text[], $11::bigint[], $12::date[], $13::bytea[], $14::bigint[])
    -- The size before is 0 in a new row, as it has to be. A row that exists is only compared with it.
    on conflict (organization_id) do update
      set org_seq = excluded.org_seq, day = excluded.day, frontier = excluded.frontier
      where head.org_seq = excluded.signed_size
    returning organization_id`,
}

/**
 * Adds entries to the log, and moves heads and cursors. Throws if a head is not where it was read: another worker has numbered events
 * of the organization at the same time.
 */
export async function appendEntries(tx: NamedTx, { entries, heads, cursors }: Appended) {
  const moved = await tx.run(appendStatement, [
    plainArray(entries.map((entry) => entry.day)),
    binaryArray(
      'text',
      entries.map((entry) => entry.organizationId),
    ),
    plainArray(entries.map((entry) => entry.orgSeq)),
    plainArray(entries.map((entry) => entry.eventDay)),
    plainArray(entries.map((entry) => entry.eventId)),
    binaryArray(
      'bytea',
      entries.map((entry) => entry.leaf),
    ),
    plainArray(cursors.map((cursor) => cursor.shard)),
    plainArray(cursors.map((cursor) => cursor.xid)),
    plainArray(cursors.map((cursor) => cursor.seq)),
    binaryArray(
      'text',
      heads.map((head) => head.organizationId),
    ),
    plainArray(heads.map((head) => head.after.tree.size)),
    plainArray(heads.map((head) => head.after.day)),
    binaryArray(
      'bytea',
      heads.map((head) => Buffer.concat(head.after.tree.frontier)),
    ),
    plainArray(heads.map((head) => head.before?.size ?? 0)),
  ])
  if (moved.length !== heads.length) {
    throw new Error('Another worker has numbered events of the same organization.')
  }
}
