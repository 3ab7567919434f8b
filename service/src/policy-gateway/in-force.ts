import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'

import { hasEnforcing, makeSnapshot, type Snapshot } from './snapshot.ts'

/** What a request is judged by, and whether something newer may exist that did not arrive. */
export type Pinned = { readonly snapshot: Snapshot; readonly isStale: boolean }

/** Of somebody who belongs to no organization: there is nothing to know, so nothing can be stale. */
export const nobodysPolicies: Pinned = Object.freeze({
  snapshot: makeSnapshot('anonymous', 0, []),
  isStale: false,
})

type Recalled = { snapshots: readonly Snapshot[]; failing: readonly string[]; keptAtMs: number }

/** A process that applied what a poll of the last 3 seconds saw is fresh. */
const freshMs = 3000
/** What has not been confirmed for a day may not stand in for an enforcing policy any more. */
const trustedMs = 24 * 60 * 60 * 1000

/**
 * What is in force in every organization, compiled and in memory. A change is applied by putting a new
 * snapshot in the place of the old one; a request that pinned the old one keeps it. Policies that cannot
 * be put in force leave the older snapshot in place, and the organization is noted as failing.
 */
export function createInForce({ now }: { now: Clock }) {
  const snapshots = new Map<string, Snapshot>()
  const failures = new Map<string, number>()
  let confirmedAtMs = -Infinity

  return {
    /** Organizations whose newest policies could not be put in force, and the epoch that serves on. */
    failures: failures as ReadonlyMap<string, number>,
    get: (organizationId: string) => snapshots.get(organizationId),
    all: () => [...snapshots.values()],
    put(snapshot: Snapshot) {
      snapshots.set(snapshot.organizationId, snapshot)
      failures.delete(snapshot.organizationId)
    },
    fail(organizationId: string) {
      failures.set(organizationId, snapshots.get(organizationId)?.epoch ?? 0)
    },
    /** What is in force turns out to be right: true if it was thought to fail. */
    isPutRight: (organizationId: string) => failures.delete(organizationId),
    /** Of other organizations the database knows nothing (any more). */
    keepOnly(organizationIds: ReadonlySet<string>) {
      for (const map of [snapshots, failures]) {
        for (const id of map.keys()) if (!organizationIds.has(id)) map.delete(id)
      }
    },
    /** All of it was what the database had at this time. */
    confirm(atMs: number) {
      confirmedAtMs = atMs
    },
    /** When that was last known to be so; -Infinity: nothing is known at all. */
    confirmedAtMs: () => confirmedAtMs,
    /** Starts from what was last known to be good, unless the database was quicker. */
    recall({ snapshots: kept, failing, keptAtMs }: Recalled) {
      if (Number.isFinite(confirmedAtMs)) return
      for (const each of kept.filter(({ organizationId }) => !snapshots.has(organizationId))) {
        snapshots.set(each.organizationId, each)
      }
      for (const id of failing) failures.set(id, snapshots.get(id)?.epoch ?? 0)
      confirmedAtMs = keptAtMs
    },
    /** What a request of this organization is judged by. Refused (503) where that cannot be known. */
    pin(organizationId: string): Pinned {
      const known = snapshots.get(organizationId)
      const ageMs = now().getTime() - confirmedAtMs
      const isFailing = failures.has(organizationId)
      const isOld = ageMs > trustedMs
      // Of an organization that is not known, nobody can say that it has no enforcing policy.
      if (ageMs === Infinity || (!known && (isFailing || isOld))) throw notKnown()
      const snapshot = known ?? makeSnapshot(organizationId, 0, [])
      if (isOld && hasEnforcing(snapshot)) throw notKnown()
      return { snapshot, isStale: isFailing || ageMs > freshMs }
    },
  }
}
export type InForce = ReturnType<typeof createInForce>

const notKnown = () =>
  new ApiError(
    'policy_evaluation_unavailable',
    "The organization's policies are not known here at the moment, so nothing is let through.",
  )

/** What this process would judge a request by, for an operator. */
export const describePinned = ({ snapshot, isStale }: Pinned) => ({
  epoch: snapshot.epoch,
  is_stale: isStale,
  policies: snapshot.policies.map(({ policyId, version, sha256, content }) => ({
    policy_id: policyId,
    version,
    mode: content.mode,
    sha256,
  })),
})
