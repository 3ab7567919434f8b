import type { Poll, Subscriber } from '#audit/follow-changes.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { RuleCheck } from '#policies/rule.ts'

import { buildSnapshot } from './build-snapshot.ts'
import type { InForce } from './in-force.ts'
import { type Published, readOrganizationIds, readPublished } from './snapshot-store.ts'

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
    let news = 0
    try {
      news = await (wasAllChanged ? applyEverywhere(options) : applyTo(options, ids))
    } catch (error) {
      // Nothing is lost: the next poll tries it again.
      isAllChanged ||= wasAllChanged
      for (const id of ids) changed.add(id)
      throw error
    }
    inForce.confirm(startedAtMs)
    metrics.policySnapshots.set(inForce.all().length)
    metrics.policyFailures.set(inForce.failures.size)
    onApplied({ poll, hasNews: news > 0 })
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

async function applyEverywhere(options: Options): Promise<number> {
  let news = 0
  for await (const page of readOrganizationIds(options.db)) news += await applyTo(options, page)
  return news
}

/** Returns in how many organizations something else is in force now, or should be. */
async function applyTo(options: Options, organizationIds: readonly string[]): Promise<number> {
  if (organizationIds.length === 0) return 0
  let news = 0
  for (const published of await readPublished(options.db, organizationIds)) {
    if (await applyOne(options, published)) news++
  }
  return news
}

async function applyOne({ inForce, log, ...tools }: Options, published: Published) {
  const { organizationId, epoch } = published
  const known = inForce.get(organizationId)
  if (known && known.epoch >= epoch) return false // epochs never go back
  const snapshot = await buildSnapshot(tools, published, known)
  if (snapshot instanceof Error) {
    log.problem('policies cannot be put in force; the older ones serve on', snapshot)
    inForce.fail(organizationId)
  } else inForce.put(snapshot)
  return true
}
