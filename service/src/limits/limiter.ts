import type { Counters } from './counters/counters.ts'
import type { LimitedCall, Limits, Verdict } from './limits.ts'

/** The slot of an admitted call. The call holds it until it is settled, however it ends. */
export type Slot = {
  readonly verdict: Verdict
  /** Frees the slot and corrects what was reserved to what was used. Only the first call has an effect. */
  settle(usedTokens: number): Promise<void>
}

export type Admission = { verdict: Verdict; slot: Slot | null }

/** Admits or refuses calls of every kind. */
export function createLimiter(counters: Pick<Counters, 'admit' | 'settle'>) {
  return async (call: LimitedCall, limits: Limits): Promise<Admission> => {
    const verdict = await counters.admit(call, limits)
    if (verdict.refusal) return { verdict, slot: null }
    let isSettled = call.leaseMs === 0
    const settle = async (used: number) => {
      if (isSettled) return
      isSettled = true
      await counters.settle({
        organizationId: call.organizationId,
        projectId: call.projectId,
        keyId: call.keyId,
        leaseId: call.leaseId,
        reserved: call.tokens,
        used,
        admittedAtMs: verdict.nowMs,
      })
    }
    return { verdict, slot: { verdict, settle } }
  }
}
export type Limiter = ReturnType<typeof createLimiter>
