import type { Clock } from '#platform/clock.ts'

import type { Counters } from './counters.ts'
import { admit, createWindows, overview, settle, type Windows } from './rolling-window.ts'

type Options = { now: Clock; organizationsMax?: number }

export type MemoryCounters = Counters & {
  /** What is remembered of each organization. */
  windows: ReadonlyMap<string, Windows>
  forgetAll(): void
}

/** Counts in the memory of this process: all there is for a process that is alone. */
export function createMemoryCounters({ now, organizationsMax = 100_000 }: Options): MemoryCounters {
  const windows = new Map<string, Windows>()
  const nowMs = () => now().getTime()

  function windowsOf(organizationId: string): Windows {
    const found = windows.get(organizationId) ?? createWindows()
    // Deleting first moves it to the end: the least recently active falls out when there are too many.
    windows.delete(organizationId)
    windows.set(organizationId, found)
    if (windows.size > organizationsMax) makeRoom()
    return found
  }

  /** One goes for each that comes: looking through all of them would stop everything else. */
  function makeRoom() {
    const [oldest] = windows.keys()
    if (oldest !== undefined) windows.delete(oldest)
  }

  return {
    windows,
    forgetAll: () => windows.clear(),
    async admit(attempt, limits) {
      // Slots die with the process: they need no end of their own.
      const lasting = { ...attempt, leaseMs: attempt.leaseMs === 0 ? 0 : Infinity }
      return admit(windowsOf(attempt.organizationId), lasting, limits, nowMs())
    },
    settle: async (settlement) => settle(windowsOf(settlement.organizationId), settlement, nowMs()),
    read: async (organizationId) =>
      overview(windows.get(organizationId) ?? createWindows(), nowMs()),
  }
}
