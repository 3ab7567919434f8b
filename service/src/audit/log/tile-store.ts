import { sql } from 'kysely'

import { type Db, runNamed, type Tx } from '#platform/database.ts'

import { splitHashes } from './merkle.ts'

/** How many hashes a complete tile has. */
export const tileWidth = 256

/** A complete tile, or the first leaves of one. */
export type Tile = { level: number; index: number; hashes: readonly Buffer[]; root: Buffer | null }

const isUntiled = `org_seq >= tiled_size + ${tileWidth}`

const untiledStatement = {
  name: 'audit_list_untiled',
  text: `select organization_id from audit_head where ${isUntiled} order by organization_id`,
}

/** The organizations whose leaves outside tiles suffice for a complete one. */
export async function listUntiled(db: Db): Promise<string[]> {
  const rows = await runNamed<[organizationId: string]>(db, untiledStatement, [])
  return rows.flat()
}

/** Undefined if there is no complete tile, or another worker makes it. */
export async function lockUntiledHead(
  tx: Tx,
  organizationId: string,
): Promise<{ size: number; tiledSize: number } | undefined> {
  const { rows } = await sql<{ size: number; tiledSize: number }>`
    select org_seq::float8 as size, tiled_size::float8 as "tiledSize" from audit_head
    where organization_id = ${organizationId} and ${sql.raw(isUntiled)} for update skip locked`.execute(
    tx,
  )
  return rows[0]
}

export async function setTiledSize(tx: Tx, organizationId: string, tiledSize: number) {
  await sql`
    update audit_head set tiled_size = ${tiledSize} where organization_id = ${organizationId}`.execute(
    tx,
  )
}

/** The leaves after the first `from` ones, up to the leaf number `to`, as far as they have not been dropped. */
export async function listLeaves(
  db: Db,
  organizationId: string,
  from: number,
  to: number,
): Promise<Buffer[]> {
  const { rows } = await sql<{ leaf: Buffer }>`
    select leaf from audit_log
    where organization_id = ${organizationId} and org_seq > ${from} and org_seq <= ${to}
    order by org_seq`.execute(db)
  return rows.map(({ leaf }) => leaf)
}

export async function findTiles(
  db: Db,
  organizationId: string,
  level: number,
  [first, last]: readonly [first: number, last: number],
): Promise<Tile[]> {
  const { rows } = await sql<{ index: string; hashes: Buffer; root: Buffer | null }>`
    select index, hashes, root from audit_tile
    where organization_id = ${organizationId} and level = ${level} and index between ${first} and ${last}
    order by index`.execute(db)
  return rows.map(({ index, hashes, root }) => ({
    level,
    index: Number(index),
    hashes: splitHashes(hashes),
    root,
  }))
}

/** A tile whose first leaves were kept when their entries were dropped is replaced by the complete one. */
export async function putTile(
  tx: Tx,
  organizationId: string,
  { level, index, hashes, root }: Tile,
) {
  await sql`
    insert into audit_tile (organization_id, level, index, hashes, root)
    values (${organizationId}, ${level}, ${index}, ${Buffer.concat(hashes)}, ${root})
    on conflict (organization_id, level, index) do update
      set hashes = excluded.hashes, root = excluded.root`.execute(tx)
}
