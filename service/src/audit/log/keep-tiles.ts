import { type Rest, withoutRest } from '#platform/background/run-task.ts'
import type { Db, Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import { appendLeaves, emptyTree, rootOf } from './merkle.ts'
import {
  findTiles,
  listLeaves,
  listUntiled,
  lockUntiledHead,
  putTile,
  setTiledSize,
  tileWidth,
} from './tile-store.ts'

/** How many leaves one transaction puts into tiles, at most. */
export const leavesMax = 64 * tileWidth

/** Leaves that should be in the log are not there. */
class LeavesMissing extends Error {
  override readonly name = 'LeavesMissing'
}

/**
 * Puts leaves into tiles, wherever there are enough for a complete one. An organization whose log is damaged does not keep the
 * others from that; what is wrong is thrown at the end.
 */
export async function keepTiles(db: Db, rest: Rest = withoutRest) {
  let damaged: LeavesMissing | undefined
  for (const organizationId of await listUntiled(db)) {
    try {
      while (await transact(db, (tx) => tileSome(tx, organizationId))) await rest()
    } catch (error) {
      if (!(error instanceof LeavesMissing)) throw error
      damaged ??= error
    }
  }
  if (damaged) throw damaged
}

async function tileSome(tx: Tx, organizationId: string): Promise<boolean> {
  const head = await lockUntiledHead(tx, organizationId)
  if (!head) return false
  const { tiledSize } = head
  const end = tiledSize + Math.min(leavesMax, head.size - tiledSize)
  const to = end - (end % tileWidth)
  const leaves = await listOpenLeaves(tx, organizationId, tiledSize, to)
  for (let at = tiledSize; at < to; at += tileWidth) {
    const hashes = leaves.slice(at - tiledSize, at - tiledSize + tileWidth)
    await putCompleteTile(tx, organizationId, { level: 0, index: at / tileWidth, hashes })
  }
  await setTiledSize(tx, organizationId, to)
  return true
}

/** The leaves after the last complete tile. The first of them may stand in an incomplete tile, because their entries were dropped. */
export async function listOpenLeaves(
  db: Db,
  organizationId: string,
  tiledSize: number,
  to: number,
): Promise<Buffer[]> {
  const index = tiledSize / tileWidth
  const [begun] = await findTiles(db, organizationId, 0, [index, index])
  const kept = begun && !begun.root ? begun.hashes.slice(0, to - tiledSize) : []
  const rest = await listLeaves(db, organizationId, tiledSize + kept.length, to)
  if (kept.length + rest.length !== to - tiledSize) {
    throw new LeavesMissing(
      `Leaves of ${organizationId} from ${tiledSize + 1} to ${to} are missing.`,
    )
  }
  return [...kept, ...rest]
}

/** The last of 256 tiles side by side completes one of the next level. */
async function putCompleteTile(
  tx: Tx,
  organizationId: string,
  { level, index, hashes }: { level: number; index: number; hashes: readonly Buffer[] },
): Promise<void> {
  const root = rootOf(appendLeaves(emptyTree, hashes).frontier)
  await putTile(tx, organizationId, { level, index, hashes, root })
  if ((index + 1) % tileWidth !== 0) return
  const below = await findTiles(tx, organizationId, level, [index + 1 - tileWidth, index])
  const roots = below.map((tile) => tile.root as Buffer)
  await putCompleteTile(tx, organizationId, {
    level: level + 1,
    index: (index + 1) / tileWidth - 1,
    hashes: roots,
  })
}
