import type { Poll, Subscriber } from '#audit/follow-changes.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { SecretBox } from '#platform/secrets.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import type { Unfinished } from './compiled-versions.ts'
import type { InForce } from './in-force.ts'
import { createBuilds } from './run-builds.ts'
import { isSame, readOrganizationIds, readPublished } from './snapshot-store.ts'

type Builds = ReturnType<typeof createBuilds>

type Options = {
  db: Db
  log: Log
  metrics: Metrics
  engine: PatternEngine
  secretBox: SecretBox
  inForce: InForce
  /** Whether a judge is configured now. Policies stay in force when it is taken away. */
  hasJudge(): boolean
  unfinished: Unfinished
  /** Ends when the copy on disk is restored: what it has need not be compiled again. */
  restored: Promise<void>
  /** Called when everything that the poll could see is in force in this process, except for failures. */
  onApplied: (applied: AppliedPoll) => void
}

/** `hasChanges`: in some organization another snapshot is in force now, or could not be put in force. */
export type AppliedPoll = { readonly poll: Poll; readonly hasChanges: boolean }

/** How often failed organizations are tried again: a backup may have brought back what was missing. */
const retryMs = 30_000

/**
 * How long a poll waits until what it has found is in force: other organizations wait as long for what the next poll finds.
 * A process that starts may take longer, because it serves no caller before.
 */
const waitMaxMs = 1500
const firstWaitMaxMs = 60_000

/** Puts in force what the polls report. One poll at a time; of several that arrive meanwhile, the newest. */
export function applyChanges(options: Options): Subscriber & { stop(): void } {
  const { log, inForce, onApplied, restored } = options
  const [builds, show] = [createBuilds(options), createDisplay(options)]
  /** The organizations that the next application reads. */
  const changed = new Set<string>()
  let isAllChanged = false
  let [isApplying, hasApplied, isStopped] = [false, false, false]
  let nextPoll: Poll | undefined
  let retriedAtMs = -Infinity

  async function applyPolls() {
    isApplying = true
    await restored
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
    let changes: number
    try {
      changes = await (wasAllChanged ? readEverywhere(options, builds) : read(options, builds, ids))
    } catch (error) {
      // The next poll tries the same organizations again.
      isAllChanged ||= wasAllChanged
      for (const id of ids) changed.add(id)
      throw error
    }
    const outcome = await builds.settle(hasApplied ? waitMaxMs : firstWaitMaxMs)
    if (isStopped) return // the builds were given up, so what the poll has found is not in force
    hasApplied = true
    for (const id of outcome.unread) changed.add(id)
    inForce.confirm(startedAtMs)
    show()
    onApplied({ poll, hasChanges: changes + outcome.changes > 0 })
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
    stop() {
      isStopped = true
      builds.stop()
    },
  }
}

/** Shows operators what is in force. */
function createDisplay({ inForce, metrics, hasJudge, log }: Options) {
  let lacked = 0
  return () => {
    const lacking = hasJudge() ? 0 : inForce.judged()
    metrics.policySnapshots.set(inForce.all().length)
    metrics.policyFailures.set(inForce.failures.size + inForce.unenforceable() + lacking)
    // Once, until a judge is back.
    if (lacking > 0 && lacked === 0) {
      const error = new Error(`enforcing policies that need a judge, which is missing: ${lacking}`)
      log.problem('policies_lack_judge', error)
    }
    lacked = lacking
  }
}

/** An organization whose policies cannot be put in force does not stop the others. */
async function readEverywhere({ db, inForce }: Options, builds: Builds): Promise<number> {
  let changes = 0
  const existing = new Set<string>()
  for await (const page of readOrganizationIds(db)) {
    for (const id of page) existing.add(id)
    changes += await read({ db, inForce }, builds, page)
  }
  inForce.keepOnly(existing)
  for (const id of builds.ids()) if (!existing.has(id)) builds.forget(id)
  return changes
}

/** Begins to put in force what is published. Returns how many organizations do not count as failing any more. */
async function read(
  { db, inForce }: Pick<Options, 'db' | 'inForce'>,
  builds: Builds,
  organizationIds: readonly string[],
): Promise<number> {
  if (organizationIds.length === 0) return 0
  let changes = 0
  for (const published of await readPublished(db, organizationIds)) {
    const { organizationId } = published
    const known = inForce.get(organizationId)
    if (known && isSame(known, published)) {
      builds.forget(organizationId)
      if (inForce.clearFailure(organizationId)) changes++
    } else {
      builds.want(published)
    }
  }
  return changes
}
