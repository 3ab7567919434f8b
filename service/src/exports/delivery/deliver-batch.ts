import type { SinkConfig } from '@gatehouse/contract/exports/sink-config'

import type {
  DestinationDeps,
  DestinationType,
  ItemResult,
  DeliveryOutcome,
  StoredObject,
} from '#exports/destinations/destination.ts'
import { outcomeForSink } from '#exports/destinations/outcome-for-sink.ts'
import {
  addDeadLetters,
  countDeadLetters,
  type DeadLetter,
  hasDeadLetters,
} from '#exports/sinks/dead-letter-store.ts'
import type { Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import { type Batch, buildBatch } from './build-batch.ts'
import {
  addObject,
  changeCursor,
  deleteCursor,
  type DeliveryLease,
  recordFailure,
  recordSuccess,
  release,
  showError,
} from './lease-store.ts'
import { deliveryFailureOf, waitForProbeMs } from './wait-after-failure.ts'

export type DeliveryDeps = {
  db: Db
  destination: DestinationType<SinkConfig>
  config: SinkConfig
  /** For one call to the destination. */
  calls: DestinationDeps
  /** Aborts when the worker stops: what then fails is no fault of the destination. */
  stopping: AbortSignal
  /** `tookMs` is the time that the destination took. */
  onSent(outcome: DeliveryOutcome['kind'], events: number, tookMs: number): void
}

type Settled = { lease: DeliveryLease; isReleased: boolean }
/** What comes next: another batch, of which `hasMore` says whether it is already there; or the cursor was given back. */
export type Step = Settled & { hasMore: boolean }

const released = (lease: DeliveryLease) => ({ lease, isReleased: true, hasMore: false })

/** Sends the next batch of a cursor and moves the cursor, or gives it back. */
export async function deliverBatch(lease: DeliveryLease, deps: DeliveryDeps): Promise<Step> {
  const { db, destination, calls, stopping } = deps
  const batch = await buildBatch(db, lease, destination)
  if (!batch) return finish(lease, db)
  const { hasMore } = batch
  if (batch.items.length === 0) return { ...(await advance(lease, batch, deps, {})), hasMore }
  const waitMs = patienceLeft(batch, destination.patienceMs ?? 0, calls.now())
  if (waitMs > 0) {
    await release(db, lease, waitMs)
    return released(lease)
  }
  // Also makes sure that no other worker has the cursor, and that none takes it before the batch must have ended.
  const plan = batch.kind === 'events' ? { plannedTo: batch.to } : {}
  await changeCursor(db, lease, plan)
  const sentAtMs = performance.now()
  const outcome = await send(lease, batch, deps)
  const tookMs = performance.now() - sentAtMs
  if (stopping.aborted && outcome.kind === 'failed') {
    await release(db, lease)
    return released(lease)
  }
  deps.onSent(outcome.kind, batch.items.length, tookMs)
  return { ...(await settle({ ...lease, ...plan }, batch, outcome, deps)), hasMore }
}

async function send(
  { sink }: DeliveryLease,
  batch: Batch,
  deps: DeliveryDeps,
): Promise<DeliveryOutcome> {
  const { destination, config, calls } = deps
  const sending = destination.send(config, batch.items, calls)
  const outcome = await outcomeForSink(sending, { type: sink.type, config })
  if (outcome.kind !== 'failed' || !calls.signal.aborted) return outcome
  return { ...outcome, error: 'The destination did not take the batch in time.' }
}

/** How long a batch that is not full still waits for more events. */
function patienceLeft({ items, isFull }: Batch, patienceMs: number, now: Date): number {
  const [oldest] = items
  if (isFull || patienceMs === 0 || !oldest) return 0
  const waitedMs = now.getTime() - Date.parse(oldest.record.created_at)
  // Clocks differ: an event of the far future does not wait until then.
  if (waitedMs < -patienceMs) return 0
  return Math.max(0, Math.min(patienceMs, patienceMs - waitedMs))
}

async function settle(
  lease: DeliveryLease,
  batch: Batch,
  outcome: DeliveryOutcome,
  deps: DeliveryDeps,
): Promise<Settled> {
  if (outcome.kind === 'delivered') {
    return advance(lease, batch, deps, { ...(outcome.object && { object: outcome.object }) })
  }
  if (outcome.kind === 'itemised') return settleItems(lease, batch, outcome.items, deps)
  if (outcome.kind === 'refused') return isolate(lease, batch, outcome.error, deps)
  await recordFailure(deps.db, lease, deliveryFailureOf(outcome, lease.attempt))
  return released(lease)
}

/** Items that failed are sent again with their whole batch: a destination that reports about items recognises the others. */
async function settleItems(
  lease: DeliveryLease,
  batch: Batch,
  items: readonly ItemResult[],
  deps: DeliveryDeps,
): Promise<Settled> {
  const letters = batch.items.flatMap((item, at) => {
    const result = items[at]
    return result?.kind === 'refused' ? [letterOf(item, result.error)] : []
  })
  const [first] = letters
  if (first && letters.length === batch.items.length)
    return isolate(lease, batch, first.error, deps)
  const failed =
    items.length < batch.items.length
      ? 'The destination did not report about every event.'
      : items.find((item) => item.kind === 'failed')?.error
  const isFull =
    letters.length > 0 && (await hasDeadLetters(deps.db, lease.sink.id, deadLettersMax))
  if (isFull && first) return waitForRequeue(lease, first.error, deps)
  if (failed === undefined) return advance(lease, batch, deps, { letters })
  const failure = deliveryFailureOf({ kind: 'failed', error: failed }, lease.attempt)
  await transact(deps.db, async (tx) => {
    await recordFailure(tx, lease, failure)
    if (batch.kind === 'events') await addDeadLetters(tx, lease.sink.id, letters)
  })
  return released(lease)
}

/** Halves what is sent until the event that the destination refuses is alone; that one becomes a dead letter. */
async function isolate(
  lease: DeliveryLease,
  batch: Batch,
  error: string,
  deps: DeliveryDeps,
): Promise<Settled> {
  const [only, ...others] = batch.items
  if (only && others.length === 0) return bury(lease, batch, letterOf(only, error), deps)
  const batchMax = Math.ceil(batch.items.length / 2)
  await changeCursor(deps.db, lease, { batchMax, plannedTo: null })
  return { lease: { ...lease, batchMax, plannedTo: null }, isReleased: false }
}

/** If a destination refuses this many events in a row, the fault is not in the events. */
const inARowMax = 20
/** Of a sink. No event is dropped without a dead letter, so the delivery stops there. */
const deadLettersMax = 10_000

/**
 * A destination that refuses everything must not turn the whole log into dead letters: after some in a row there is one with each
 * probe. It does not stop altogether, because large events in a row may be refused for good reason.
 */
async function bury(
  lease: DeliveryLease,
  batch: Batch,
  letter: DeadLetter,
  deps: DeliveryDeps,
): Promise<Settled> {
  const { db } = deps
  if (batch.kind !== 'events') return advance(lease, batch, deps, { letters: [letter] })
  const { id: sinkId } = lease.sink
  const probing = { state: 'error', waitMs: waitForProbeMs() } as const
  if (await hasDeadLetters(db, sinkId, deadLettersMax)) {
    return waitForRequeue(lease, letter.error, deps)
  }
  const before = { first: letter.orgSeq - inARowMax + 1, last: letter.orgSeq - 1 }
  const run = lease.isReplay ? 0 : 1 + (await countDeadLetters(db, sinkId, before))
  if (run < inARowMax) return advance(lease, batch, deps, { letters: [letter] })
  await transact(db, async (tx) => {
    const error = `The destination refuses every event. ${letter.error}`.slice(0, 500)
    const moved = { orgSeq: batch.to, day: batch.day, plannedTo: null, batchMax: 1 }
    await recordFailure(tx, lease, { error, ...probing }, moved)
    await addDeadLetters(tx, sinkId, [letter])
  })
  return released(lease)
}

/** No event is dropped, and no more of them become dead letters. */
async function waitForRequeue(
  lease: DeliveryLease,
  refusal: string,
  { db }: DeliveryDeps,
): Promise<Settled> {
  const error = `There are ${deadLettersMax} dead letters: requeue some. ${refusal}`.slice(0, 500)
  await recordFailure(db, lease, { error, state: 'error', waitMs: waitForProbeMs() })
  return released(lease)
}

const letterOf = (item: Batch['items'][number], error: string): DeadLetter => ({
  orgSeq: item.record.org_seq,
  eventId: item.record.event_id,
  eventDay: item.eventDay,
  error,
})

type Delivered = { letters?: readonly DeadLetter[]; object?: StoredObject }

/** The cursor moves in the transaction that keeps what else is to be known about the batch. */
async function advance(
  lease: DeliveryLease,
  batch: Batch,
  { db, destination }: DeliveryDeps,
  { letters = [], object }: Delivered,
): Promise<Settled> {
  const grown = lease.batchMax === null ? null : lease.batchMax * 2
  const batchMax = grown !== null && grown >= destination.limits.itemsMax ? null : grown
  const moved =
    batch.kind === 'events'
      ? { orgSeq: batch.to, day: batch.day, plannedTo: null, batchMax }
      : { signedSize: batch.to, batchMax }
  await transact(db, async (tx) => {
    await recordSuccess(tx, lease, moved)
    // A checkpoint that is refused is not kept: the next one covers what it says.
    if (batch.kind === 'events') await addDeadLetters(tx, lease.sink.id, letters)
    const error = letters.at(-1)?.error
    if (error !== undefined) await showError(tx, lease, error)
    if (object) await addObject(tx, lease.sink.id, object)
  })
  return { lease: { ...lease, ...moved, attempt: 0 }, isReleased: false }
}

/** A replay that has sent everything is over. */
async function finish(lease: DeliveryLease, db: Db): Promise<Step> {
  await (lease.isReplay ? deleteCursor(db, lease) : release(db, lease))
  return released(lease)
}
