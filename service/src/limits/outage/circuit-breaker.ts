import type { Clock } from '#platform/clock.ts'
import { RedisLate } from '#platform/redis.ts'

type Options = { now: Clock; onChange: (state: CircuitState) => void }

/** counters-with-fallback.ts explains what each state means. */
export type CircuitState = 'closed' | 'open' | 'returning'

const failuresMax = 5
const failuresWithinMs = 2000
/**
 * Answers that are late together count as one failure: on a busy machine Redis waits for the processor like everything else,
 * and then all commands that were sent in the meantime are late.
 */
const lateEveryMs = 100
/** Several times the interval between two probes, so that every process has sent its counts by then. */
const returningMs = 2000

/** Decides by the outcome of earlier tries whether Redis is asked. */
export function createCircuitBreaker({ now, onChange }: Options) {
  let state: CircuitState = 'closed'
  let failedAtMs: number[] = []
  let lateAtMs = -Infinity
  let returnedAtMs = 0

  function enter(next: CircuitState) {
    if (state === next) return
    state = next
    failedAtMs = []
    onChange(next)
  }

  return {
    state(): CircuitState {
      if (state === 'returning' && now().getTime() - returnedAtMs >= returningMs) enter('closed')
      return state
    },
    trySucceeded() {
      if (failedAtMs.length > 0) failedAtMs = []
    },
    tryFailed(error: unknown) {
      const nowMs = now().getTime()
      if (state === 'closed' && error instanceof RedisLate) {
        if (nowMs - lateAtMs < lateEveryMs) return
        lateAtMs = nowMs
      }
      failedAtMs = [...failedAtMs.filter((atMs) => nowMs - atMs < failuresWithinMs), nowMs]
      if (state === 'returning' || failedAtMs.length >= failuresMax) enter('open')
    },
    /** Redis answers again and has the counts of this process. */
    redisReturned() {
      if (state !== 'open') return
      returnedAtMs = now().getTime()
      enter('returning')
    },
  }
}
export type CircuitBreaker = ReturnType<typeof createCircuitBreaker>
