import type { LastSeen } from './last-seen.ts'
import type { Attempt, Limits, Verdict } from './limits.ts'
import type { MemoryCounters } from './memory-counters.ts'
import type { OpenSlots } from './open-slots.ts'
import { shareOf } from './share.ts'

type Options = {
  local: MemoryCounters
  seen: LastSeen
  slots: OpenSlots
  /** How many processes share the limits, this one included. */
  processes: () => number
}

/** Decides without the others: by this process's share of the limits, in its own memory. */
export function createShareAdmission({ local, seen, slots, processes }: Options) {
  return async (attempt: Attempt, limits: Limits): Promise<Verdict> => {
    const share = shareOf(limits, {
      processes: processes(),
      known: seen.of(attempt),
      slots: slots.sharedBy(attempt),
      nowMs: seen.clock().getTime(),
    })
    const verdict = await local.admit(attempt, share)
    if (!verdict.refusal) slots.open(attempt, 'local')
    return verdict
  }
}
