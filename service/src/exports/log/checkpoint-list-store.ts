import { sql } from 'kysely'

import type { Db } from '#platform/database.ts'

export type ListedCheckpoint = {
  organizationId: string
  size: number
  root: Buffer
  frontier: Buffer
  keyId: number
  note: string
  at: Date
}

type Row = Omit<ListedCheckpoint, 'size'> & { size: string }

const columns = sql`organization_id as "organizationId", size, root, frontier, key_id as "keyId", note, at`

const toCheckpoint = (row: Row): ListedCheckpoint => ({ ...row, size: Number(row.size) })

/** Returns one checkpoint more than `limit` if there are more. */
export async function listCheckpoints(
  db: Db,
  organizationId: string,
  { after, limit, order }: { after: number | undefined; limit: number; order: 'asc' | 'desc' },
): Promise<ListedCheckpoint[]> {
  const [side, direction] = order === 'asc' ? [sql`>`, sql`asc`] : [sql`<`, sql`desc`]
  const beyond = after === undefined ? sql`` : sql`and size ${side} ${after}`
  const { rows } = await sql<Row>`
    select ${columns} from audit_checkpoint where organization_id = ${organizationId} ${beyond}
    order by size ${direction} limit ${limit + 1}`.execute(db)
  return rows.map(toCheckpoint)
}

/** The first checkpoint that covers an event, with how many leaves stand in tiles. */
export async function findCovering(
  db: Db,
  organizationId: string,
  orgSeq: number,
): Promise<{ checkpoint: ListedCheckpoint; tiledSize: number } | undefined> {
  const { rows } = await sql<Row & { tiledSize: string }>`
    select ${columns}, (
      select tiled_size from audit_head where organization_id = ${organizationId}
    ) as "tiledSize"
    from audit_checkpoint where organization_id = ${organizationId} and size >= ${orgSeq}
    order by size limit 1`.execute(db)
  const [row] = rows
  if (!row) return undefined
  const { tiledSize, ...checkpoint } = row
  return { checkpoint: toCheckpoint(checkpoint), tiledSize: Number(tiledSize) }
}
