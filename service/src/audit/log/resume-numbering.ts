import type { Db } from '#platform/database.ts'
import { transactNamed } from '#platform/transaction.ts'

import {
  holdCursor,
  listUnnumberedEvents,
  markRestored,
  restartCursor,
  shards,
} from './log-store.ts'
import { batchMax, numberEvents } from './sequence-events.ts'

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
  // Statements may take their time: they look at every event that is kept.
  return transactNamed(db, { statement_timeout: '0' }, async (tx) => {
    const cursor = await holdCursor(tx, shard)
    const events = await listUnnumberedEvents(tx, cursor, batchMax)
    if (events.length > 0) await numberEvents(tx, events, { today: cursor.today, cursors: [] })
    await markRestored(tx, shard)
    // Only when all have numbers: what is behind the cursor is never read again.
    if (events.length < batchMax) {
      const xid = String(BigInt(cursor.horizon) - 1n)
      await restartCursor(tx, { shard, xid, seq: lastSeq })
    }
    return events.length
  })
}
