import type { Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import {
  holdCursor,
  listUnnumberedEvents,
  markRestored,
  moveCursor,
  restartCursor,
} from './log-store.ts'
import { batchMax, numberEvents } from './sequence-events.ts'

const shards = Array.from({ length: 16 }, (_, shard) => shard)
/** Comes after every event of its transaction. */
const lastSeq = '9223372036854775807'

/**
 * Numbers every event that has no number, after the database was moved to another server, and lets the numbering go on from there.
 * Transaction numbers start again on another server, so the cursors may be ahead of all new events. Returns how many events got
 * a number. Can be repeated, also while workers run.
 */
export async function resumeNumbering(db: Db): Promise<number> {
  let events = 0
  for (const shard of shards) {
    let numbered: number
    do {
      numbered = await resumeShard(db, shard)
      events += numbered
    } while (numbered === batchMax)
  }
  return events
}

async function resumeShard(db: Db, shard: number): Promise<number> {
  return transact(db, async (tx) => {
    const cursor = await holdCursor(tx, shard)
    const events = await listUnnumberedEvents(tx, shard, cursor, batchMax)
    await numberEvents(tx, events, cursor.today)
    await markRestored(tx, shard)
    // Only when all have numbers: what is behind the cursor is never read again.
    if (events.length < batchMax) {
      const xid = String(BigInt(cursor.horizon) - 1n)
      await moveCursor(tx, shard, { xid, seq: lastSeq })
      await restartCursor(tx, shard)
    }
    return events.length
  })
}
