import type { Clock } from './clock.ts'

type Options = {
  now: Clock
  /** How many consecutive failures open the circuit. */
  failuresMax: number
  /** How long no call is made while the circuit is open; after that one call per pause. */
  pauseMs: number
  /** A further condition for the circuit to be open. */
  mayOpen?: () => boolean
}

/**
 * A circuit breaker. After `failuresMax` consecutive failures it refuses calls for `pauseMs`, then allows
 * one as a probe: if that succeeds the circuit closes. A probe that never reports its outcome does not block
 * the next one, which is allowed after another pause.
 */
export function createBreaker({ now, failuresMax, pauseMs, mayOpen = () => true }: Options) {
  let failures = 0
  let pausesUntilMs = 0
  const isOpen = () => failures >= failuresMax && mayOpen()
  const isPausing = () => isOpen() && now().getTime() < pausesUntilMs
  return {
    /** Whether calls are refused at the moment. Unlike `mayTry` it does not claim the probe. */
    isPausing,
    mayTry(): boolean {
      if (isPausing()) return false
      if (isOpen()) pausesUntilMs = now().getTime() + pauseMs
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
export type Breaker = ReturnType<typeof createBreaker>
