import { writeCanonicalRecord } from '#audit/canonical-record.ts'
import type { Db, NamedTx } from '#platform/database.ts'
import { transactNamed } from '#platform/transaction.ts'

import {
  appendEntries,
  findHeads,
  type LogHead,
  type HeadChange,
  type LogEntry,
} from './append-store.ts'
import {
  type CommittedEvent,
  findShardsWithNews,
  listCommittedEvents,
  lockCursors,
  numberingSettings,
  type LogPosition,
  shards as allShards,
} from './log-store.ts'
import { appendLeaves, emptyTree, hashLeaf } from './merkle.ts'

/** How many events are numbered in one transaction, of all shards together. */
export const batchMax = 1000

export type Numbered = {
  events: number
  hasMore: boolean
  /** Another worker numbers a shard, so its events were left to it. */
  isHeld: boolean
}

/**
 * Gives committed events their numbers, in those of the shards that have new ones. Any number of workers may do this: each shard is
 * left to the one that has locked its cursor. Entries, heads and cursors change in one transaction, so an event gets one number
 * however often a worker dies. Each shard gets an equal part of the batch: one with millions of events does not keep the others waiting.
 */
export async function sequenceEvents(
  db: Db,
  shards: readonly number[] = allShards,
): Promise<Numbered> {
  return transactNamed(db, numberingSettings, async (tx) => {
    const news = await findShardsWithNews(tx, shards)
    if (news.length === 0) return { events: 0, hasMore: false, isHeld: false }
    const { locked, today } = await lockCursors(tx, news)
    const isHeld = locked.length < news.length
    if (locked.length === 0) return { events: 0, hasMore: false, isHeld }
    const limitPerShard = Math.floor(batchMax / locked.length)
    const events = await listCommittedEvents(tx, locked, limitPerShard)
    const byShard = [...Map.groupBy(events, ({ shard }) => shard).values()]
    const unnumbered = events.filter(({ isNumbered }) => !isNumbered)
    const cursors = byShard.flatMap((itsEvents) => itsEvents.slice(-1))
    await numberEvents(tx, unnumbered, { today, cursors })
    const hasMore = byShard.some((itsEvents) => itsEvents.length === limitPerShard)
    return { events: unnumbered.length, hasMore, isHeld }
  })
}

/** Gives events the next numbers of their organizations, and moves cursors. The caller holds the cursors of their shards. */
export async function numberEvents(
  tx: NamedTx,
  events: readonly CommittedEvent[],
  { today, cursors }: { today: string; cursors: readonly LogPosition[] },
) {
  const byOrganization = Map.groupBy(events, ({ organizationId }) => organizationId)
  const heads = await findHeads(tx, [...byOrganization.keys()])
  const appended = [...byOrganization].map(([organizationId, itsEvents]) =>
    append(organizationId, itsEvents, heads.get(organizationId), today),
  )
  await appendEntries(tx, {
    entries: appended.flatMap(({ entries }) => entries),
    heads: appended.map(({ change }) => change),
    cursors,
  })
}

function append(
  organizationId: string,
  events: readonly CommittedEvent[],
  head: LogHead | undefined,
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
