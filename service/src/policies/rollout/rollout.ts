import type { PolicyRollout } from '@gatehouse/contract/policy'

import type { ProcessGroup } from './rollout-store.ts'

type Counts = Pick<PolicyRollout, 'is_applied' | 'processes' | 'versions'>

const versionsShown = 100

/** Adds up the processes by status and by version. A process that failed to apply the last change is not `applied`. */
export function countProcesses(groups: readonly ProcessGroup[]): Counts {
  const live = groups.filter(({ isLive }) => isLive)
  const failed = live.filter(({ isApplied, isFailed }) => !isApplied && isFailed)
  const applied = live.filter(({ isApplied }) => isApplied)
  const byVersion = new Map<number | null, number>()
  for (const { version, processes } of live) {
    byVersion.set(version, (byVersion.get(version) ?? 0) + processes)
  }
  return {
    // Without live processes nothing is known to be applied.
    is_applied: live.length > 0 && applied.length === live.length,
    processes: {
      live: sum(live),
      applied: sum(applied),
      pending: sum(live) - sum(applied) - sum(failed),
      failed: sum(failed),
      silent: sum(groups) - sum(live),
    },
    versions: [...byVersion]
      .toSorted(([one], [two]) => (two ?? 0) - (one ?? 0))
      .slice(0, versionsShown)
      .map(([version, processes]) => ({ version, processes })),
  }
}

const sum = (groups: readonly ProcessGroup[]) =>
  groups.reduce((total, { processes }) => total + processes, 0)
