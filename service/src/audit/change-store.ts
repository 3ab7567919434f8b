import { sql } from 'kysely'

import { type Db, executeNamed, type Tx } from '#platform/database.ts'

/**
 * What changed. A `policy_draft` changes nothing that is in force. `limits` are those of an organization, a project or a
 * key, whose counts go on, or the name of a project; a `project`, `api_key` or `session` that changes has ended. A `member` that
 * changes may have another role, other projects, or an end: what this person acts with has to be looked up again.
 */
export type ChangeKind =
  | 'organization'
  | 'project'
  | 'api_key'
  | 'member'
  | 'session'
  | 'limits'
  | 'policy'
  | 'policy_draft'

export type Change = { organizationId: string; kind: ChangeKind; objectId: string }

/** A position in the log of changes. Transaction ids have 64 bits and stay text. */
export type Cursor = { xid: string; seq: string }

export type ChangeRow = Change &
  Cursor & {
    /** No running transaction can still commit an earlier row. */
    isSettled: boolean
  }

export async function insertChange(tx: Tx, change: Change, at: Date) {
  await tx
    .insertInto('config_change')
    .values({
      organization_id: change.organizationId,
      kind: change.kind,
      object_id: change.objectId,
      at,
    })
    .execute()
}

/** `snapshot` is PostgreSQL's: which transactions are visible. */
export type Horizon = Cursor & { snapshot: string }

/**
 * The position to start reading from: no transaction before it is running any more, so all earlier changes are
 * visible to queries from now on. It only moves forward, on one server.
 */
export async function readHorizon(db: Db): Promise<Horizon> {
  const query = sql<{ xid: string; snapshot: string }>`
    select pg_snapshot_xmin(pg_current_snapshot())::text as xid,
      pg_current_snapshot()::text as snapshot`
  const [row] = await executeNamed(db, 'read_horizon', query)
  if (!row) throw new Error('the database returned no snapshot')
  return { ...row, seq: '0' }
}

/** Committed changes after the cursor, settled ones first: sequence order is not commit order. */
export async function readChanges(db: Db, after: Cursor, limit: number): Promise<ChangeRow[]> {
  const query = sql<ChangeRow>`
    select xid::text as "xid", seq::text as "seq", organization_id as "organizationId",
      kind as "kind", object_id as "objectId",
      xid < pg_snapshot_xmin(pg_current_snapshot()) as "isSettled"
    from config_change
    where (xid, seq) > (${after.xid}::text::xid8, ${after.seq}::bigint)
    order by config_change.xid, config_change.seq
    limit ${limit}`
  return executeNamed(db, 'read_changes', query)
}

/** Removes a bounded number of changes that every live process has long read. */
export async function sweepChanges(tx: Tx, before: Date, rowsMax: number): Promise<number> {
  const result = await sql`
    delete from config_change where (xid, seq) in (
      select xid, seq from config_change where at < ${before} order by at limit ${rowsMax}
    )`.execute(tx)
  return Number(result.numAffectedRows ?? 0)
}
