import { ApiError } from '#platform/api-error.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'

import { hasEnforcing, makeSnapshot, type Snapshot } from './snapshot.ts'

/** The snapshot a request is evaluated by; `isStale` when something newer may exist that has not arrived. */
export type Pinned = { readonly snapshot: Snapshot; readonly isStale: boolean }

/** Anonymous callers belong to no organization, so no policies apply to them. */
export const anonymousPolicies: Pinned = Object.freeze({
  snapshot: makeSnapshot('anonymous', 0, []),
  isStale: false,
})

type Copy = { snapshots: readonly Snapshot[]; failing: readonly string[]; keptAtMs: number }

/** Snapshots are fresh when a poll of the last 3 seconds has confirmed them. */
const freshMs = 3000
const emptiesMax = 10_000
/** An enforcing policy that no poll has confirmed for a day is not relied on any more. */
const trustedMs = 24 * 60 * 60 * 1000

/**
 * The snapshots in force in every organization, compiled and in memory. A change replaces a snapshot; a
 * request that pinned the old one keeps it. Policies that cannot be compiled leave the older snapshot in
 * place, and the organization is marked as failing.
 */
export function createInForce({ now }: { now: Clock }) {
  const snapshots = new Map<string, Snapshot>()
  const failures = new Map<string, number>()
  /** Of organizations without policies: they need not be made for every call. */
  const empties = new BoundedMap<string, Snapshot>(emptiesMax)
  let confirmedAtMs = -Infinity

  function findEmpty(organizationId: string): Snapshot {
    const found = empties.get(organizationId)
    if (found) return found
    const empty = makeSnapshot(organizationId, 0, [])
    empties.set(organizationId, empty)
    return empty
  }

  return {
    /** Organizations whose newest policies could not be put in force, with the epoch that stays in force. */
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
    /** The snapshot in force is the right one; returns whether the organization was marked as failing. */
    clearFailure: (organizationId: string) => failures.delete(organizationId),
    /** Drops every other organization: the database does not have it any more. */
    keepOnly(organizationIds: ReadonlySet<string>) {
      for (const map of [snapshots, failures]) {
        for (const id of map.keys()) if (!organizationIds.has(id)) map.delete(id)
      }
    },
    /** Everything here is what the database had at this time. */
    confirm(atMs: number) {
      confirmedAtMs = atMs
    },
    /** The time of the last `confirm` or of the restored copy; -Infinity before either. */
    confirmedAtMs: () => confirmedAtMs,
    /** Starts from the copy on disk, unless a poll has succeeded before. */
    restore({ snapshots: copied, failing, keptAtMs }: Copy) {
      if (Number.isFinite(confirmedAtMs)) return
      for (const each of copied.filter(({ organizationId }) => !snapshots.has(organizationId))) {
        snapshots.set(each.organizationId, each)
      }
      for (const id of failing) failures.set(id, snapshots.get(id)?.epoch ?? 0)
      confirmedAtMs = keptAtMs
    },
    /** The snapshot for a request of this organization; throws a 503 when it is unknown or too old. */
    pin(organizationId: string): Pinned {
      const known = snapshots.get(organizationId)
      const ageMs = now().getTime() - confirmedAtMs
      const isFailing = failures.has(organizationId)
      const isOld = ageMs > trustedMs
      // An organization without a snapshot may have an enforcing policy, unless a recent poll found none.
      if (ageMs === Infinity || (!known && (isFailing || isOld))) throw policiesUnknown()
      const snapshot = known ?? findEmpty(organizationId)
      if (isOld && hasEnforcing(snapshot)) throw policiesUnknown()
      return { snapshot, isStale: isFailing || ageMs > freshMs }
    },
  }
}
export type InForce = ReturnType<typeof createInForce>

const policiesUnknown = () =>
  new ApiError(
    'policy_evaluation_unavailable',
    "The organization's policies cannot be loaded at the moment, so its requests are refused; retry later.",
  )

/** A snapshot as the operations port shows it. */
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
