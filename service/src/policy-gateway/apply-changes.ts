import type { Poll, Subscriber } from '#audit/follow-changes.ts'
import type { Db } from '#platform/database.ts'
import { within } from '#platform/deadline.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { RuleCheck } from '#policies/rule.ts'

import { buildSnapshot } from './build-snapshot.ts'
import type { InForce } from './in-force.ts'
import { type Published, readOrganizationIds, readPublished } from './snapshot-store.ts'
import type { Snapshot } from './snapshot.ts'

type Options = {
  db: Db
  log: Log
  metrics: Metrics
  checkRule: RuleCheck
  inForce: InForce
  /** Called when everything that the poll could see is in force in this process, except for failures. */
  onApplied: (applied: AppliedPoll) => void
}

/** `hasChanges`: in some organization another snapshot is in force now, or could not be put in force. */
export type AppliedPoll = { readonly poll: Poll; readonly hasChanges: boolean }

/** How often failed organizations are tried again: compiling may only have been too slow. */
const retryMs = 30_000

/** Puts in force what the polls report. One poll at a time; of several that arrive meanwhile, the newest. */
export function applyChanges(options: Options): Subscriber {
  const { log, metrics, inForce, onApplied } = options
  /** The organizations that the next application reads. */
  const changed = new Set<string>()
  let isAllChanged = false
  let isApplying = false
  let nextPoll: Poll | undefined
  let retriedAtMs = -Infinity

  async function applyPolls() {
    isApplying = true
    while (nextPoll) {
      const poll: Poll = nextPoll
      nextPoll = undefined
      await apply(poll).catch((error: unknown) => log.problem('policies_not_applied', error))
    }
    isApplying = false
  }

  async function apply(poll: Poll) {
    const startedAtMs = poll.startedAt.getTime()
    if (startedAtMs - retriedAtMs > retryMs) {
      retriedAtMs = startedAtMs
      for (const id of inForce.failures.keys()) changed.add(id)
    }
    const [wasAllChanged, ids] = [isAllChanged, [...changed]]
    isAllChanged = false
    changed.clear()
    let outcome: Outcome
    try {
      outcome = await (wasAllChanged ? applyEverywhere(options) : applyTo(options, ids))
    } catch (error) {
      // The next poll tries the same organizations again.
      isAllChanged ||= wasAllChanged
      for (const id of ids) changed.add(id)
      throw error
    }
    for (const id of outcome.unread) changed.add(id)
    inForce.confirm(startedAtMs)
    metrics.policySnapshots.set(inForce.all().length)
    metrics.policyFailures.set(inForce.failures.size)
    onApplied({ poll, hasChanges: outcome.changes > 0 })
  }

  return {
    onChange({ kind, organizationId }) {
      if (kind === 'policy') changed.add(organizationId)
    },
    onGap() {
      isAllChanged = true
    },
    onPoll(poll) {
      nextPoll = poll
      if (!isApplying) void applyPolls()
    },
  }
}

async function applyEverywhere(options: Options): Promise<Outcome> {
  const total: Outcome = { changes: 0, unread: [] }
  const existing = new Set<string>()
  for await (const page of readOrganizationIds(options.db)) {
    for (const id of page) existing.add(id)
    const { changes, unread } = await applyTo(options, page)
    total.changes += changes
    total.unread.push(...unread)
  }
  options.inForce.keepOnly(existing)
  return total
}

/**
 * `changes` counts the organizations whose snapshot was replaced, whose failure has ended, or that have
 * failed. `unread` are those whose policies could not be read; the next poll tries them again.
 */
type Outcome = { changes: number; unread: string[] }

/** An error with one organization does not stop the others. */
async function applyTo(options: Options, organizationIds: readonly string[]): Promise<Outcome> {
  const outcome: Outcome = { changes: 0, unread: [] }
  if (organizationIds.length === 0) return outcome
  for (const published of await readPublished(options.db, organizationIds)) {
    try {
      if (await applyOne(options, published)) outcome.changes++
    } catch (error) {
      options.log.problem('organization_policies_unreadable', error)
      options.inForce.fail(published.organizationId)
      outcome.unread.push(published.organizationId)
      outcome.changes++
    }
  }
  return outcome
}

const buildMaxMs = 10_000

/** Returns whether anything changed: the snapshot, or whether the organization counts as failed. */
async function applyOne({ inForce, log, ...deps }: Options, published: Published) {
  const { organizationId } = published
  const known = inForce.get(organizationId)
  if (known && isUpToDate(known, published)) return inForce.clearFailure(organizationId)
  const tooSlow = () => new Error('compiling all policies of an organization took too long')
  const snapshot = await within(buildMaxMs, tooSlow, () => buildSnapshot(deps, published, known))
  if (snapshot instanceof Error) {
    log.problem('policies_not_compiled', snapshot)
    inForce.fail(organizationId)
  } else inForce.put(snapshot)
  return true
}

/** Compares hashes too: a database that was restored from a dump can reach the same epoch again. */
function isUpToDate({ epoch, policies }: Snapshot, published: Published): boolean {
  return (
    epoch === published.epoch &&
    policies.length === published.policies.length &&
    policies.every((policy, index) => {
      const other = published.policies[index]
      return policy.policyId === other?.policyId && policy.sha256 === other.sha256
    })
  )
}
