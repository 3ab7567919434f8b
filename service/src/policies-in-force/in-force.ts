import { isRolledBack } from '#gateway-config/decide/arm.ts'
import { ApiError } from '#platform/api-error.ts'
import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'
import type { CompiledPolicy } from '#policies/compile.ts'
import { lacksJudge } from '#policies/refusals.ts'

import {
  countUnenforceable,
  enforcesByJudge,
  hasEnforcing,
  makeSnapshot,
  type Snapshot,
} from './snapshot.ts'

/** The snapshot a request is evaluated by. */
export type Pinned = {
  readonly snapshot: Snapshot
  /** Something newer may exist that has not arrived. */
  readonly isStale: boolean
  /** The configuration of the policy gateway is not enforced at the moment, because it refused too much. */
  readonly isRolledBack: boolean
}

/** Anonymous callers belong to no organization, so no policies apply to them. */
export const anonymousPolicies: Pinned = Object.freeze({
  snapshot: makeSnapshot('anonymous', 0, []),
  isStale: false,
  isRolledBack: false,
})

type Copy = { snapshots: readonly Snapshot[]; failing: readonly string[]; keptAtMs: number }

/** Snapshots are fresh when a poll of the last 3 seconds has confirmed them. */
const freshMs = 3000
const emptiesMax = 10_000
/** An enforcing policy that no poll has confirmed for a day is not relied on any more. */
const trustedMs = 24 * 60 * 60 * 1000

/**
 * The snapshots in force in every organization, compiled and in memory. A change replaces a snapshot; a
 * request that pinned the old one keeps it. Policies that are not there as they were published leave the older
 * snapshot in place, and the organization is marked as failing.
 */
export function createInForce({ now }: { now: Clock }) {
  const snapshots = new Map<string, Snapshot>()
  const failures = new Map<string, number>()
  /** How many enforcing policies and guardrails cannot be evaluated, and how many policies ask the judge, where there are such. */
  const [unenforceable, judged] = [new Map<string, number>(), new Map<string, number>()]
  const findEmpty = createEmptySnapshots()
  let confirmedAtMs = -Infinity

  function setSnapshot(snapshot: Snapshot) {
    snapshots.set(snapshot.organizationId, snapshot)
    keepCount(unenforceable, snapshot, countUnenforceable(snapshot))
    keepCount(judged, snapshot, snapshot.policies.filter(enforcesByJudge).length)
  }

  return {
    /** Organizations whose newest policies could not be put in force, with the epoch that stays in force. */
    failures: failures as ReadonlyMap<string, number>,
    get: (organizationId: string) => snapshots.get(organizationId),
    all: () => [...snapshots.values()],
    put(snapshot: Snapshot) {
      setSnapshot(snapshot)
      failures.delete(snapshot.organizationId)
    },
    fail(organizationId: string) {
      failures.set(organizationId, snapshots.get(organizationId)?.epoch ?? 0)
    },
    /** The snapshot in force is the right one; returns whether the organization was marked as failing. */
    clearFailure: (organizationId: string) => failures.delete(organizationId),
    /** Drops every other organization: the database does not have it any more. */
    keepOnly(organizationIds: ReadonlySet<string>) {
      for (const map of [snapshots, failures, unenforceable, judged]) {
        for (const id of map.keys()) if (!organizationIds.has(id)) map.delete(id)
      }
    },
    /** How many enforcing policies and guardrails are in force and cannot be evaluated, in all organizations. */
    unenforceable: () => sumOf(unenforceable),
    /** How many enforcing policies ask the judge, in all organizations. */
    judged: () => sumOf(judged),
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
        setSnapshot(each)
      }
      for (const id of failing) failures.set(id, snapshots.get(id)?.epoch ?? 0)
      confirmedAtMs = keptAtMs
    },
    /**
     * The copy of an organization that was not ready when the others were restored. It keeps counting as failing until a
     * poll has found what is published.
     */
    restoreLate(snapshot: Snapshot) {
      const { organizationId, epoch } = snapshot
      if (snapshots.has(organizationId) || !failures.has(organizationId)) return
      setSnapshot(snapshot)
      failures.set(organizationId, epoch)
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
      return toPinned(snapshot, isFailing || ageMs > freshMs, now())
    },
  }
}
export type InForce = ReturnType<typeof createInForce>

const toPinned = (snapshot: Snapshot, isStale: boolean, at: Date): Pinned => ({
  snapshot,
  isStale,
  isRolledBack: isRolledBack(snapshot.gateway?.rolledBackUntil ?? null, at),
})

/** The snapshots of organizations without policies: they need not be made for every call. */
function createEmptySnapshots() {
  const empties = new BoundedMap<string, Snapshot>(emptiesMax)
  return (organizationId: string): Snapshot => {
    const found = empties.get(organizationId)
    if (found) return found
    const empty = makeSnapshot(organizationId, 0, [])
    empties.set(organizationId, empty)
    return empty
  }
}

function keepCount(counts: Map<string, number>, { organizationId }: Snapshot, count: number) {
  if (count > 0) counts.set(organizationId, count)
  else counts.delete(organizationId)
}

const sumOf = (counts: ReadonlyMap<string, number>) =>
  [...counts.values()].reduce((sum, count) => sum + count, 0)

const policiesUnknown = () =>
  new ApiError(
    'policy_evaluation_unavailable',
    "The organization's policies cannot be loaded at the moment, so its requests are refused; retry later.",
  )

/** A snapshot as the operations port shows it. */
export const describePinned = (
  { snapshot, isStale }: Omit<Pinned, 'isRolledBack'>,
  hasJudge: boolean,
) => ({
  epoch: snapshot.epoch,
  is_stale: isStale,
  ...(snapshot.gateway && {
    gateway_revision: snapshot.gateway.revision,
    rolled_back_until: snapshot.gateway.rolledBackUntil,
  }),
  ...(snapshot.guardrails.length > 0 && {
    guardrails: snapshot.guardrails.map(({ id, mode, asked }) => ({
      guardrail_id: id,
      mode,
      ...(asked === null && { problem: 'no key of MASTER_KEYS opens its secret' }),
    })),
  }),
  policies: snapshot.policies.map((policy) => {
    const { policyId, version, sha256, content } = policy
    const problem = findProblem(policy, hasJudge)
    return {
      policy_id: policyId,
      version,
      mode: content.mode,
      sha256,
      ...(problem !== null && { problem: `the rule ${problem}` }),
    }
  }),
})

function findProblem(policy: CompiledPolicy, hasJudge: boolean): string | null {
  if ('problem' in policy.rule) return policy.rule.problem
  return enforcesByJudge(policy) && !hasJudge ? lacksJudge : null
}
