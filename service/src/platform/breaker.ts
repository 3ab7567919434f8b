import type { Clock } from './clock.ts'

type Options = {
  now: Clock
  /** How many failures in a row open it. */
  failuresMax: number
  /** How long nothing is tried afterwards; then one call at a time. */
  pauseMs: number
}

/**
 * Leaves somebody alone who has failed several times in a row. After a pause one call may try again: it alone
 * decides whether the others follow. One that never says how it went leaves its place after another pause.
 */
export function createBreaker({ now, failuresMax, pauseMs }: Options) {
  let failures = 0
  let pausesUntilMs = 0
  return {
    mayTry(): boolean {
      if (failures < failuresMax) return true
      const nowMs = now().getTime()
      if (nowMs < pausesUntilMs) return false
      pausesUntilMs = nowMs + pauseMs
      return true
    },
    succeeded() {
      failures = 0
    },
    failed() {
      failures++
      if (failures >= failuresMax) pausesUntilMs = now().getTime() + pauseMs
    },
  }
}
