import { sql } from 'kysely'

import type { Tx } from '#platform/database.ts'

/** A head with events that no checkpoint covers. */
export type UnsignedHead = {
  organizationId: string
  size: string
  frontier: Buffer
  /** The hash of the last checkpoint. */
  previousHash: Buffer | null
}

type Due = { events: number; intervalMs: number; limit: number }

/**
 * Locks heads with so many events since the last checkpoint, or whose last checkpoint is older, by the clock of the database. Other
 * workers pass them over. The last checkpoints are read when the locks are held: a statement that does both could lock a head that
 * another worker has just signed, and would still see the checkpoint before.
 */
export async function lockUnsignedHeads(
  tx: Tx,
  { events, intervalMs, limit }: Due,
): Promise<UnsignedHead[]> {
  const { rows: locked } = await sql<{ id: string }>`
    select organization_id as id from audit_head
    where org_seq > signed_size and (
      org_seq >= signed_size + ${events} or signed_at is null
      or signed_at <= now() - make_interval(secs => ${intervalMs / 1000}) or signed_at > now()
    )
    order by signed_at nulls first limit ${limit}
    for update skip locked`.execute(tx)
  const { rows } = await sql<UnsignedHead>`
    select head.organization_id as "organizationId", head.org_seq as size, head.frontier,
      last.hash as "previousHash"
    from audit_head as head
    left join audit_checkpoint as last
      on last.organization_id = head.organization_id and last.size = head.signed_size
    where head.organization_id = any(${locked.map(({ id }) => id)})`.execute(tx)
  return rows
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

export async function insertCheckpoints(tx: Tx, checkpoints: readonly StoredCheckpoint[]) {
  await tx
    .insertInto('audit_checkpoint')
    .values(
      checkpoints.map(({ organizationId, keyId, ...others }) => ({
        ...others,
        organization_id: organizationId,
        key_id: keyId,
      })),
    )
    .execute()
  await sql`
    update audit_head as head set signed_size = signed.size, signed_at = now()
    from unnest(
      ${checkpoints.map(({ organizationId }) => organizationId)}::text[],
      ${checkpoints.map(({ size }) => size)}::bigint[]
    ) as signed (organization_id, size)
    where head.organization_id = signed.organization_id`.execute(tx)
}
