import { dependencyUnavailable } from '#platform/api-error.ts'

import type { Counters } from './counters/counters.ts'
import { isAdmitted, type LimitedCall, type Limits, type Verdict } from './limits.ts'
import type { LoadQuotas } from './quotas/load-quotas.ts'

/** The slot of an admitted call. The call holds it until it is settled, however it ends. */
export type Slot = {
  readonly verdict: Verdict
  /**
   * Frees the slot and corrects what was reserved to what was used. Only the first call has an effect. Returns the
   * credits of all ended calls, for each of the call's quota counters.
   */
  settle(usedTokens: number, usedCredits?: number): Promise<readonly number[]>
}

export type Admission = { verdict: Verdict; slot: Slot | null }

type Options = {
  counters: Pick<Counters, 'admit' | 'settle'>
  /** For calls with quotas. */
  loadQuotas?: LoadQuotas
}

/** Admits or refuses calls of every kind. */
export function createLimiter({ counters, loadQuotas }: Options) {
  return async (call: LimitedCall, limits: Limits): Promise<Admission> => {
    const verdict = await admitLoaded(call, limits)
    if (!isAdmitted(verdict)) return { verdict, slot: null }
    let isSettled = call.leaseMs === 0
    const settle = async (used: number, usedCredits = 0) => {
      if (isSettled) return []
      isSettled = true
      const settled = await counters.settle({
        organizationId: call.organizationId,
        projectId: call.projectId,
        keyId: call.keyId,
        leaseId: call.leaseId,
        quotas: call.quotas,
        countsInMinuteOnly: call.countsInMinuteOnly,
        reserved: call.tokens,
        used,
        usedCredits,
        admittedAtMs: verdict.nowMs,
      })
      return settled.credits
    }
    return { verdict, slot: { verdict, settle } }
  }

  /** Asks again with the amounts of counters that were missing. They may be lost once more, or be another process's. */
  async function admitLoaded(call: LimitedCall, limits: Limits): Promise<Verdict> {
    let { quotas } = call
    for (let tries = 0; tries < triesMax; tries++) {
      const verdict = await counters.admit({ ...call, quotas }, limits)
      const missing = verdict.quotas?.missing ?? []
      if (!quotas || !loadQuotas || missing.length === 0) return verdict
      // Amounts of an earlier try are too old by now.
      const wanted = quotas.known ? quotas.counters : missing
      const amounts = await loadQuotas(call.organizationId, wanted)
      quotas = { ...quotas, known: { askedAtMs: verdict.nowMs, amounts } }
    }
    throw dependencyUnavailable('usage of your quota')
  }
}
export type Limiter = ReturnType<typeof createLimiter>

const triesMax = 4
