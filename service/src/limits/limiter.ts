import type { Counters } from './counters.ts'
import type { Attempt, Limits, Verdict } from './limits.ts'

/** A call that was let in. It holds its slot until it is settled, however it ends. */
export type Slot = {
  readonly verdict: Verdict
  /** Frees the slot and corrects what was reserved to what was used. Only the first call counts. */
  settle(usedTokens: number): Promise<void>
}

export type Admission = { verdict: Verdict; slot: Slot | null }

/** Lets a call in or refuses it: the one way through for every kind of call that is limited. */
export function createLimiter(counters: Pick<Counters, 'admit' | 'settle'>) {
  return async (attempt: Attempt, limits: Limits): Promise<Admission> => {
    const verdict = await counters.admit(attempt, limits)
    if (verdict.refusal) return { verdict, slot: null }
    let isSettled = attempt.leaseMs === 0
    const { tokens: reserved, ...lease } = attempt
    const settle = async (used: number) => {
      if (isSettled) return
      isSettled = true
      await counters.settle({ ...lease, reserved, used, admittedAtMs: verdict.nowMs })
    }
    return { verdict, slot: { verdict, settle } }
  }
}
export type Limiter = ReturnType<typeof createLimiter>
