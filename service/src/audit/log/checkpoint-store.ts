import type { NamedTx } from '#platform/database.ts'

/** A head with events that no checkpoint covers. */
export type UnsignedHead = {
  organizationId: string
  size: number
  frontier: Buffer
  /** The hash of the last checkpoint. */
  previousHash: Buffer | null
}

type Due = { events: number; intervalMs: number; limit: number }

const lockStatement = {
  name: 'audit_lock_unsigned',
  text: `
    select organization_id from audit_head
    where org_seq > signed_size and (
      org_seq >= signed_size + $1::bigint or signed_at is null
      or signed_at <= now() - make_interval(secs => $2::float8) or signed_at > now()
    )
    order by signed_at nulls first limit $3::integer
    for update skip locked`,
}

const unsignedStatement = {
  name: 'audit_find_unsigned',
  text: `
    select head.organization_id, head.org_seq::float8, head.frontier, last.hash
    from audit_head as head
    left join audit_checkpoint as last
      on last.organization_id = head.organization_id and last.size = head.signed_size
    where head.organization_id = any($1::text[])`,
}

/**
 * Locks heads with at least this many events since the last checkpoint, or whose last checkpoint is older, by the clock of the database. Other
 * workers pass them over. The last checkpoints are read when the locks are held: a statement that does both could lock a head that
 * another worker has just signed, and would still see the checkpoint before.
 */
export async function lockUnsignedHeads(
  tx: NamedTx,
  { events, intervalMs, limit }: Due,
): Promise<UnsignedHead[]> {
  const due = [events, intervalMs / 1000, limit]
  const locked = (await tx.run<[id: string]>(lockStatement, due)).flat()
  if (locked.length === 0) return []
  type Row = [organizationId: string, size: number, frontier: Buffer, previousHash: Buffer | null]
  const rows = await tx.run<Row>(unsignedStatement, [locked])
  return rows.map(([organizationId, size, frontier, previousHash]) => ({
    organizationId,
    size,
    frontier,
    previousHash,
  }))
}

export type StoredCheckpoint = {
  organizationId: string
  size: number
  root: Buffer
  frontier: Buffer
  keyId: number
  note: string
  hash: Buffer
  at: Date
}

const insertStatement = {
  name: 'audit_insert_checkpoints',
  text: `
    with signed as (
      insert into audit_checkpoint (organization_id, size, root, frontier, key_id, note, hash, at)
      select * from unnest($1::text[], $2::bigint[], $3::bytea[], $4::bytea[], $5::integer[], $6::text[], $7::bytea[],
        $8::timestamptz[])
      returning organization_id, size
    )
    update audit_head as head set signed_size = signed.size, signed_at = now()
    from signed where head.organization_id = signed.organization_id`,
}

export async function insertCheckpoints(tx: NamedTx, checkpoints: readonly StoredCheckpoint[]) {
  const column = (read: (checkpoint: StoredCheckpoint) => unknown) => checkpoints.map(read)
  await tx.run(insertStatement, [
    column(({ organizationId }) => organizationId),
    column(({ size }) => size),
    column(({ root }) => root),
    column(({ frontier }) => frontier),
    column(({ keyId }) => keyId),
    column(({ note }) => note),
    column(({ hash }) => hash),
    column(({ at }) => at),
  ])
}
