import type { PolicyRollout } from '@gatehouse/contract/policy'

import type { Standing } from './rollout-store.ts'

type Counts = Pick<PolicyRollout, 'is_applied' | 'processes' | 'versions'>

const versionsShown = 100

/** Adds up where the processes stand. Whoever could not apply the last change has not applied it. */
export function countStandings(standings: readonly Standing[]): Counts {
  const live = standings.filter(({ isLive }) => isLive)
  const failed = live.filter(({ isApplied, isFailed }) => !isApplied && isFailed)
  const applied = live.filter(({ isApplied }) => isApplied)
  const byVersion = new Map<number | null, number>()
  for (const { version, processes } of live) {
    byVersion.set(version, (byVersion.get(version) ?? 0) + processes)
  }
  return {
    // With nobody to ask, nothing is known to be applied.
    is_applied: live.length > 0 && applied.length === live.length,
    processes: {
      live: sum(live),
      applied: sum(applied),
      pending: sum(live) - sum(applied) - sum(failed),
      failed: sum(failed),
      silent: sum(standings) - sum(live),
    },
    versions: [...byVersion]
      .toSorted(([one], [two]) => (two ?? 0) - (one ?? 0))
      .slice(0, versionsShown)
      .map(([version, processes]) => ({ version, processes })),
  }
}

const sum = (standings: readonly Standing[]) =>
  standings.reduce((total, { processes }) => total + processes, 0)
