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
  /** Everything that the poll could see is now in force here, but for the failures. */
  onApplied: (applied: Applied) => void
}

/** `hasNews`: something was put in force, or could not be. */
export type Applied = { readonly poll: Poll; readonly hasNews: boolean }

/** What could not be compiled is tried again: it may only have been too slow. */
const retryMs = 30_000

/** Puts in force what the polls bring. One poll at a time; of those that come meanwhile the last one. */
export function applyChanges(options: Options): Subscriber {
  const { log, metrics, inForce, onApplied } = options
  const changed = new Set<string>()
  let isAllChanged = false
  let isApplying = false
  let latest: Poll | undefined
  let triedAtMs = -Infinity

  async function applyAll() {
    isApplying = true
    while (latest) {
      const poll: Poll = latest
      latest = undefined
      await apply(poll).catch((error: unknown) => log.problem('applying policies', error))
    }
    isApplying = false
  }

  async function apply(poll: Poll) {
    const startedAtMs = poll.startedAt.getTime()
    if (startedAtMs - triedAtMs > retryMs) {
      triedAtMs = startedAtMs
      for (const id of inForce.failures.keys()) changed.add(id)
    }
    const [wasAllChanged, ids] = [isAllChanged, [...changed]]
    isAllChanged = false
    changed.clear()
    let outcome: Outcome
    try {
      outcome = await (wasAllChanged ? applyEverywhere(options) : applyTo(options, ids))
    } catch (error) {
      // Nothing is lost: the next poll tries it again.
      isAllChanged ||= wasAllChanged
      for (const id of ids) changed.add(id)
      throw error
    }
    for (const id of outcome.again) changed.add(id)
    inForce.confirm(startedAtMs)
    metrics.policySnapshots.set(inForce.all().length)
    metrics.policyFailures.set(inForce.failures.size)
    onApplied({ poll, hasNews: outcome.news > 0 })
  }

  return {
    onChange({ kind, organizationId }) {
      if (kind === 'policy') changed.add(organizationId)
    },
    onGap() {
      isAllChanged = true
    },
    onPoll(poll) {
      latest = poll
      if (!isApplying) void applyAll()
    },
  }
}

async function applyEverywhere(options: Options): Promise<Outcome> {
  const total: Outcome = { news: 0, again: [] }
  const there = new Set<string>()
  for await (const page of readOrganizationIds(options.db)) {
    for (const id of page) there.add(id)
    const { news, again } = await applyTo(options, page)
    total.news += news
    total.again.push(...again)
  }
  options.inForce.keepOnly(there)
  return total
}

/** `news`: in how many organizations something else is in force now, or should be. */
type Outcome = { news: number; again: string[] }

/** Trouble with one organization is its own: the others go on, and it is tried again. */
async function applyTo(options: Options, organizationIds: readonly string[]): Promise<Outcome> {
  const outcome: Outcome = { news: 0, again: [] }
  if (organizationIds.length === 0) return outcome
  for (const published of await readPublished(options.db, organizationIds)) {
    try {
      if (await applyOne(options, published)) outcome.news++
    } catch (error) {
      options.log.problem('reading the policies of an organization', error)
      options.inForce.fail(published.organizationId)
      outcome.again.push(published.organizationId)
      outcome.news++
    }
  }
  return outcome
}

const buildMaxMs = 10_000

async function applyOne({ inForce, log, ...tools }: Options, published: Published) {
  const { organizationId } = published
  const known = inForce.get(organizationId)
  if (known && isWhat(known, published)) return inForce.isPutRight(organizationId)
  const tooSlow = () => new Error('compiling all policies of an organization took too long')
  const snapshot = await within(buildMaxMs, tooSlow, () => buildSnapshot(tools, published, known))
  if (snapshot instanceof Error) {
    log.problem('policies cannot be put in force; the older ones serve on', snapshot)
    inForce.fail(organizationId)
  } else inForce.put(snapshot)
  return true
}

/** The same epoch is not enough: a database that was restored from a dump counts it anew. */
function isWhat({ epoch, policies }: Snapshot, published: Published): boolean {
  return (
    epoch === published.epoch &&
    policies.length === published.policies.length &&
    policies.every((policy, index) => {
      const other = published.policies[index]
      return policy.policyId === other?.policyId && policy.sha256 === other.sha256
    })
  )
}
