import type { Db } from '#platform/database.ts'

import { listOpenLeaves } from './keep-tiles.ts'
import {
  appendLeaves,
  emptyTree,
  hashNodes,
  type TreePlace,
  placesOfProof,
  rootOf,
} from './merkle.ts'
import { findTiles, tileWidth } from './tile-store.ts'

/** The tiles of a level are 8 levels of the tree. */
const levelsPerTile = Math.log2(tileWidth)

/** The hashes that prove that the event with this number is in the tree of this size, from the leaf up. */
export async function proveInclusion(
  db: Db,
  organizationId: string,
  orgSeq: number,
  tree: { size: number; tiledSize: number },
): Promise<Buffer[]> {
  const rootAt = createRootReader(db, organizationId, tree)
  const hashes: Buffer[] = []
  for (const places of placesOfProof(orgSeq - 1, tree.size)) {
    const roots: Buffer[] = []
    for (const place of places) roots.push(await rootAt(place))
    hashes.push(roots.reduceRight((right, left) => hashNodes(left, right)))
  }
  return hashes
}

/** Reads the root of a complete subtree from the tile that has it, and every tile once. */
function createRootReader(
  db: Db,
  organizationId: string,
  { size, tiledSize }: { size: number; tiledSize: number },
) {
  const tiles = new Map<string, Promise<readonly Buffer[]>>()
  const readTile = async (level: number, index: number): Promise<readonly Buffer[]> => {
    if (level === 0 && index * tileWidth >= tiledSize) {
      return listOpenLeaves(
        db,
        organizationId,
        index * tileWidth,
        Math.min(size, (index + 1) * tileWidth),
      )
    }
    const [tile] = await findTiles(db, organizationId, level, [index, index])
    if (tile) return tile.hashes
    // Of a tile above level 0 that is not complete yet there are only the tiles below.
    const below = [index * tileWidth, (index + 1) * tileWidth - 1] as const
    return (await findTiles(db, organizationId, level - 1, below)).flatMap(({ root }) => root ?? [])
  }
  const rootAt = async ({ level, index }: TreePlace): Promise<Buffer> => {
    if (level >= levelsPerTile && (index + 1) * 2 ** level > tiledSize) {
      // Its leaves are in no tile yet.
      const left = await rootAt({ level: level - 1, index: index * 2 })
      return hashNodes(left, await rootAt({ level: level - 1, index: index * 2 + 1 }))
    }
    const tileLevel = Math.floor(level / levelsPerTile)
    const width = 2 ** (level % levelsPerTile)
    const tileIndex = Math.floor((index * width) / tileWidth)
    const key = `${tileLevel}/${tileIndex}`
    const hashes = tiles.get(key) ?? readTile(tileLevel, tileIndex)
    tiles.set(key, hashes)
    const first = (index * width) % tileWidth
    return rootOf(appendLeaves(emptyTree, (await hashes).slice(first, first + width)).frontier)
  }
  return rootAt
}
