import { writeCanonicalRecord } from '#audit/canonical-record.ts'
import type { Db, Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import {
  type CommittedEvent,
  findHeads,
  findShardsWithNews,
  type Head,
  type HeadChange,
  insertEntries,
  listCommittedEvents,
  lockCursor,
  type LogEntry,
  moveCursor,
  moveHeads,
} from './log-store.ts'
import { appendLeaves, emptyTree, hashLeaf } from './merkle.ts'

export const batchMax = 1000

/**
 * Gives committed events their numbers, in every shard that has new ones. Returns how many, and whether there are more. Any number
 * of workers may do this: each shard is left to the one that has locked its cursor.
 */
export async function sequenceEvents(db: Db): Promise<{ events: number; hasMore: boolean }> {
  let events = 0
  let hasMore = false
  for (const shard of await findShardsWithNews(db)) {
    const { read, numbered } = await sequenceShard(db, shard)
    events += numbered
    hasMore ||= read === batchMax
  }
  return { events, hasMore }
}

/** Entries, heads and cursor change in one transaction, so an event gets one number however often a worker dies. */
async function sequenceShard(db: Db, shard: number): Promise<{ read: number; numbered: number }> {
  return transact(db, async (tx) => {
    const cursor = await lockCursor(tx, shard)
    if (!cursor) return { read: 0, numbered: 0 }
    const events = await listCommittedEvents(tx, shard, cursor, batchMax)
    const last = events.at(-1)
    if (!last) return { read: 0, numbered: 0 }
    const unnumbered = events.filter(({ isNumbered }) => !isNumbered)
    await numberEvents(tx, unnumbered, cursor.today)
    await moveCursor(tx, shard, last)
    return { read: events.length, numbered: unnumbered.length }
  })
}

/** Gives events the next numbers of their organizations. The caller holds the cursor of their shard. */
export async function numberEvents(tx: Tx, events: readonly CommittedEvent[], today: string) {
  if (events.length === 0) return
  const byOrganization = Map.groupBy(events, ({ organizationId }) => organizationId)
  const heads = await findHeads(tx, [...byOrganization.keys()])
  const appended = [...byOrganization].map(([organizationId, itsEvents]) =>
    append(organizationId, itsEvents, heads.get(organizationId), today),
  )
  await insertEntries(
    tx,
    appended.flatMap(({ entries }) => entries),
  )
  await moveHeads(
    tx,
    appended.map(({ change }) => change),
  )
}

function append(
  organizationId: string,
  events: readonly CommittedEvent[],
  head: Head | undefined,
  today: string,
): { entries: LogEntry[]; change: HeadChange } {
  const before = head?.tree ?? emptyTree
  // A clock that was set back must not bring a number into an older partition than the one before it.
  const day = head && head.day > today ? head.day : today
  const entries = events.map((event, at) => {
    const orgSeq = before.size + at + 1
    const leaf = hashLeaf(writeCanonicalRecord(event, orgSeq))
    return { day, organizationId, orgSeq, eventDay: event.day, eventId: event.id, leaf }
  })
  const tree = appendLeaves(
    before,
    entries.map(({ leaf }) => leaf),
  )
  return { entries, change: { organizationId, before: head?.tree, after: { tree, day } } }
}
