import type { Digest, StoredObject } from '#exports/destinations/destination.ts'
import { outcomeForSink } from '#exports/destinations/outcome-for-sink.ts'

import type { DeliveryDeps } from './deliver-batch.ts'
import { findPendingDigest, finishDigest, type PendingDigest } from './digest-store.ts'
import { type DeliveryLease, recordFailure, release } from './lease-store.ts'
import { deliveryFailureOf } from './wait-after-failure.ts'

const hourMs = 60 * 60 * 1000

/** Stores the digest of an hour that is over. Returns false if that failed: the cursor was given back. */
export async function sendDigest(lease: DeliveryLease, deps: DeliveryDeps): Promise<boolean> {
  const { db, destination, config, calls, stopping } = deps
  if (lease.isReplay || !destination.sendDigest) return true
  const pending = await findPendingDigest(db, lease.sink.id)
  if (!pending) return true
  const digest = toDigest(lease.sink.organizationId, pending)
  const sending = destination.sendDigest(config, digest, calls)
  const outcome = await outcomeForSink(sending, { type: lease.sink.type, config })
  if (outcome.kind === 'delivered' && outcome.object) {
    await finishDigest(db, lease, pending.objects, outcome.object)
    return true
  }
  if (stopping.aborted) {
    await release(db, lease)
    return false
  }
  await recordFailure(db, lease, deliveryFailureOf(outcome, lease.attempt))
  return false
}

const toDigest = (orgId: string, { from, objects, previous }: PendingDigest): Digest => ({
  orgId,
  from: from.toISOString(),
  to: new Date(from.getTime() + hourMs).toISOString(),
  objects: objects as [StoredObject, ...StoredObject[]],
  previous,
})
