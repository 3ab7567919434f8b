import { ApiError } from '#platform/api-error.ts'
import type { Metrics } from '#platform/metrics.ts'

import { createLoopWatch } from './loop-watch.ts'

/** So many calls may always wait, and as many as get done in a quarter of a second. */
const waitingMin = 50
const waitSeconds = 0.25
/** How long there may be more, before calls are refused: a burst is not an overload. */
const burstMs = 500
/** How long the process takes no bursts after it has refused a call. */
const strictMs = 1000

/** How long every turn of the event loop may be long before calls are refused. Administrators may be needed to help. */
const patienceMs = { inference: 200, administration: 3000 } as const

/**
 * Refuses calls when the process has more work than it can do, before any work is done for them: the others then stay
 * fast. There are two signs. Calls wait longer and longer until they are sent to an upstream, for instance because the
 * database is slow; or every turn of the event loop is long.
 */
export function createOverload(metrics: Pick<Metrics, 'requestsShed'>, nowMs = defaultNow) {
  const loop = createLoopWatch(nowMs)
  const done = createRate(nowMs)
  let waiting = 0
  let fullSinceMs: number | undefined
  let refusedAtMs = -Infinity

  function isQueueTooLong(): boolean {
    if (waiting < Math.max(waitingMin, done.perSecond() * waitSeconds)) {
      fullSinceMs = undefined
      return false
    }
    fullSinceMs ??= nowMs()
    return nowMs() - fullSinceMs > burstMs || nowMs() - refusedAtMs < strictMs
  }

  function refuse(kind: keyof typeof patienceMs): never {
    refusedAtMs = nowMs()
    metrics.requestsShed.inc({ kind })
    throw new ApiError('overloaded', 'The gateway has more calls than it can serve; retry later.', {
      headers: { 'retry-after': '1' },
    })
  }

  return {
    /** Throws if the process can take no more calls. The call waits until it `leave`s: when it is sent, or at its end. */
    enter() {
      if (isQueueTooLong() || loop.behindMs() > patienceMs.inference) refuse('inference')
      waiting++
      let isWaiting = true
      return {
        leave(wasSent: boolean) {
          if (!isWaiting) return
          isWaiting = false
          waiting--
          if (wasSent) done.count()
        },
      }
    },
    refuseAdministration() {
      if (loop.behindMs() > patienceMs.administration) refuse('administration')
    },
    stop: loop.stop,
  }
}
export type Overload = ReturnType<typeof createOverload>

/** How many per second there were lately: in the current second and the one before. */
function createRate(nowMs: () => number) {
  let startedAtMs = nowMs()
  let current = 0
  let before = 0
  function turnOver() {
    const seconds = Math.floor((nowMs() - startedAtMs) / 1000)
    if (seconds === 0) return
    before = seconds === 1 ? current : 0
    current = 0
    startedAtMs += seconds * 1000
  }
  return {
    count() {
      turnOver()
      current++
    },
    perSecond() {
      turnOver()
      return Math.max(before, current)
    },
  }
}

const defaultNow = () => performance.now()
