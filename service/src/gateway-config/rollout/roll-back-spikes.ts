import { lockOrganization } from '#access/organizations/organization-store.ts'
import type { Announce } from '#audit/announce.ts'
import { gatehouse } from '#audit/event.ts'
import { findConfig, setRolledBack } from '#gateway-config/config/config-store.ts'
import { presentConfig, configFactsOf } from '#gateway-config/config/saved-config.ts'
import { isRolledBack } from '#gateway-config/decide/arm.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { transact } from '#platform/transaction.ts'
import { enterEpoch } from '#policies/rollout/epoch-store.ts'

import {
  type Candidate,
  readCallerCounts,
  readCandidates,
  readDecisionCounts,
} from './decision-count-store.ts'
import {
  type CallerCounts,
  findSpike,
  isOfMany,
  rollbackSettingsOf,
  type Spike,
  windowStart,
} from './spike.ts'

type Deps = { db: Db; now: Clock; log: Log; metrics: Metrics; announce: Announce }
type Suspect = Candidate & { since: Date; spike: Spike }
type Found = Suspect & { callers: CallerCounts }

const minuteMs = 60_000

/**
 * Looks once whether a configuration refuses too much, and rolls those back. Any number of processes may do it. There is no rest
 * between pages of candidates: those on the last page wait for their rollback, too.
 */
export async function rollBackSpikes(deps: Deps) {
  const { db, now, log } = deps
  for await (const candidates of readCandidates(db, now())) {
    for (const suspect of await findSpikes(deps, candidates)) {
      await rollBackIfOfMany(deps, suspect).catch((error: unknown) =>
        log.problem('rollback_failed', error),
      )
    }
  }
}

/** Credentials are looked at only where there is a spike: their counts are more to read. */
async function rollBackIfOfMany(deps: Deps, suspect: Suspect) {
  const { decisions } = rollbackSettingsOf(suspect.rollout)
  const callers = await readCallerCounts(deps.db, suspect, decisions)
  if (isOfMany(callers)) await rollBack(deps, { ...suspect, callers })
}

async function findSpikes({ db, now }: Deps, candidates: readonly Candidate[]): Promise<Suspect[]> {
  const asked = candidates.map((candidate) => {
    const { windowMinutes } = rollbackSettingsOf(candidate.rollout)
    return { ...candidate, since: windowStart(windowMinutes, candidate.rolledBackUntil, now()) }
  })
  const enforced = (await readDecisionCounts(db, asked)).filter(({ arm }) => arm !== 'shadow')
  const byOrganization = Map.groupBy(enforced, ({ organizationId }) => organizationId)
  return asked.flatMap((candidate) => {
    const counts: Partial<Record<(typeof enforced)[number]['decision'], number>> = {}
    for (const { decision, count } of byOrganization.get(candidate.organizationId) ?? []) {
      counts[decision] = (counts[decision] ?? 0) + count
    }
    const spike = findSpike(rollbackSettingsOf(candidate.rollout), counts)
    return spike ? [{ ...candidate, spike }] : []
  })
}

/** One process succeeds: the others find another revision, or that it is done. */
async function rollBack({ db, now, metrics, announce }: Deps, found: Found) {
  const { organizationId, revision, rollout, spike, callers } = found
  const settings = rollbackSettingsOf(rollout)
  const isDone = await transact(db, async (tx) => {
    await lockOrganization(tx, organizationId)
    const before = await findConfig(tx, organizationId)
    const at = now()
    if (before?.revision !== revision || isRolledBack(before.rolledBackUntil, at)) return false
    const rolledBackUntil = new Date(at.getTime() + settings.cooldownMinutes * minuteMs)
    await setRolledBack(tx, organizationId, rolledBackUntil)
    const after = { ...before, rolledBackUntil }
    await announce(tx, {
      organizationId,
      by: gatehouse,
      action: 'rolled_back',
      before: presentConfig(before),
      after: presentConfig(after),
      facts: {
        ...configFactsOf(after),
        rolled_back_until: rolledBackUntil.toISOString(),
        requests: spike.requests,
        hits: spike.hits,
        share: spike.share,
        credentials: callers.enforced,
        credentials_refused: callers.refused,
        threshold: settings.threshold,
        window_minutes: settings.windowMinutes,
        rollback_decisions: settings.decisions,
      },
      notifies: 'policy',
    })
    await enterEpoch(tx, { organizationId, gatewayRevision: revision, at })
    return true
  })
  if (isDone) metrics.gatewayRollbacks.inc()
}
