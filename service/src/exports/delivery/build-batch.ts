import type {
  DestinationType,
  ExportItem,
  ExportRecord,
} from '#exports/destinations/destination.ts'
import { listCheckpoints } from '#exports/log/checkpoint-list-store.ts'
import { listEntries } from '#exports/log/entry-store.ts'
import { presentCheckpoint, presentRecord } from '#exports/log/present-record.ts'
import type { Db } from '#platform/database.ts'

import type { DeliveryLease } from './lease-store.ts'

type Rules = Pick<DestinationType<never>, 'limits' | 'groupOf' | 'patienceMs'>

/**
 * Events are read in pages, and only as many bytes as still go into the batch: nearly all that is read is sent. A page may have a little
 * more, because the database only estimates how long an event is as JSON, and because the last events of a batch would otherwise
 * be read in many small pages.
 */
const pageSize = 250
const pageBytesMin = 64 * 1024
const estimateBytes = 4 * 1024

/** How many pages of entries whose events were dropped are passed over before the cursor is moved. */
const pagesWithoutEvents = 20

/** An item with what a dead letter has to say of it. */
type BatchItem = ExportItem & { eventDay: string }

export type Batch = {
  kind: 'events' | 'checkpoints'
  items: BatchItem[]
  /** The number of the last event or checkpoint that is done when the batch is delivered. */
  to: number
  /** The day of the last entry. */
  day: string
  /** Whether more events would not have gone into it. */
  isFull: boolean
  /** Whether the log already has more to send after it, as far as was read. */
  hasMore: boolean
}

/**
 * What a cursor has to send next. Checkpoints come as soon as all their events are delivered. Undefined: nothing. The same batch
 * comes out again as long as the cursor and its plan are the same, because entries never change.
 */
export async function buildBatch(
  db: Db,
  lease: DeliveryLease,
  rules: Rules,
): Promise<Batch | undefined> {
  return (await buildCheckpointBatch(db, lease, rules)) ?? buildEventBatch(db, lease, rules)
}

async function buildCheckpointBatch(
  db: Db,
  { isReplay, sink, orgSeq, signedSize, day, batchMax }: DeliveryLease,
  rules: Rules,
): Promise<Batch | undefined> {
  if (isReplay || orgSeq <= signedSize) return undefined
  const limit = Math.min(batchMax ?? 100, 100)
  const page = { after: signedSize, limit, order: 'asc' } as const
  const due = (await listCheckpoints(db, sink.organizationId, page)).filter(
    ({ size }) => size <= orgSeq,
  )
  const items = collect({ ...rules, batchMax })
  for (const checkpoint of due) {
    if (!items.add(presentCheckpoint(checkpoint), day)) break
  }
  const last = items.list.at(-1)
  if (!last) return undefined
  return {
    kind: 'checkpoints',
    items: items.list,
    to: last.record.org_seq,
    day,
    isFull: true,
    hasMore: false,
  }
}

async function buildEventBatch(
  db: Db,
  lease: DeliveryLease,
  rules: Rules,
): Promise<Batch | undefined> {
  const { sink, plannedTo, endSeq, batchMax } = lease
  const to = plannedTo ?? endSeq ?? undefined
  const items = collect({ ...rules, batchMax })
  let [after, day, isLongWay] = [lease.orgSeq, lease.day, false]
  for (let pages = 1; ; pages++) {
    const bytesLeft = rules.limits.bytesMax - items.bytes()
    const { rows, hasMore } = await listEntries(db, sink.organizationId, {
      after,
      to,
      since: day,
      limit: pageSize,
      bytesMax: Math.max(bytesLeft + estimateBytes, pageBytesMin),
      mayBeEmpty: items.list.length > 0,
    })
    // There was another page, but its first event does not fit.
    if (rows.length === 0 && items.list.length > 0) {
      return { kind: 'events', items: items.list, to: after, day, isFull: true, hasMore: true }
    }
    for (const { orgSeq, day: entryDay, event } of rows) {
      // The event of an entry that outlived it was dropped: a gap in the log says so.
      if (event && !items.add(presentRecord(event), event.day)) {
        return { kind: 'events', items: items.list, to: after, day, isFull: true, hasMore: true }
      }
      ;[after, day] = [orgSeq, entryDay]
    }
    isLongWay = hasMore && pages >= pagesWithoutEvents && items.list.length === 0
    if (!hasMore || isLongWay) break
  }
  if (after === lease.orgSeq) {
    // What was planned has been dropped meanwhile: what comes after it is not.
    return plannedTo === null
      ? undefined
      : buildEventBatch(db, { ...lease, plannedTo: null }, rules)
  }
  const isFull = plannedTo !== null || lease.isReplay
  return { kind: 'events', items: items.list, to: after, day, isFull, hasMore: isLongWay }
}

/** Takes records for as long as they fit: at least one, however large it is. */
function collect({ limits, groupOf, batchMax }: Rules & { batchMax: number | null }) {
  const itemsMax = Math.min(limits.itemsMax, batchMax ?? limits.itemsMax)
  const list: BatchItem[] = []
  let bytes = 0
  return {
    list,
    bytes: () => bytes,
    add(record: ExportRecord, eventDay: string): boolean {
      const json = JSON.stringify(record)
      bytes += Buffer.byteLength(json)
      const [first] = list
      if (first) {
        if (list.length >= itemsMax || bytes > limits.bytesMax) return false
        if (groupOf && groupOf(record) !== groupOf(first.record)) return false
      }
      list.push({ record, json, eventDay })
      return true
    },
  }
}
