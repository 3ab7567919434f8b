import { ApiError } from '#platform/api-error.ts'
import type { Metrics } from '#platform/metrics.ts'

import { createLoopWatch } from './loop-watch.ts'

/** So many calls may always wait, and as many as were held in a quarter of a second. */
const waitingMin = 50
const waitSeconds = 0.25
/** How many waiting calls of one organization count: its own trouble must not look like everybody's. */
const waitingOfOneMax = 16
/** With fewer waiting calls, turns are long because other programs use the machine: refusing calls would not help. */
const busyMin = 20
/** How long there may be more, before calls are refused: five hundred callers who come at once are not an overload. */
const burstMs = 2000
/** How long the process takes no bursts after it has refused a call. */
const strictMs = 1000

/** How long every turn of the event loop may be long, once calls were refused. Administrators may be needed to help. */
const strictLoopMs = 200
const administrationLoopMs = 5000
type Kind = 'inference' | 'administration'

/**
 * Refuses calls when the process has more work than it can do, before any work is done for them: the others then stay
 * fast. There are two signs. Calls wait longer and longer for their limits and credits, in Redis and the database; or
 * every turn of the event loop is long.
 */
export function createOverload(metrics: Pick<Metrics, 'requestsShed'>, nowMs = defaultNow) {
  const loop = createLoopWatch(nowMs)
  const admitted = createRate(nowMs)
  const waitingOf = new Map<string, number>()
  let waiting = 0
  let fullSinceMs: number | undefined
  let refusedAtMs = -Infinity

  const isStrict = () => nowMs() - refusedAtMs < strictMs

  function isQueueTooLong(): boolean {
    if (waiting < Math.max(waitingMin, admitted.perSecond() * waitSeconds)) {
      fullSinceMs = undefined
      return false
    }
    fullSinceMs ??= nowMs()
    return isStrict() || nowMs() - fullSinceMs > burstMs
  }

  const isLoopTooSlow = () =>
    waiting >= busyMin && loop.behindMs() > (isStrict() ? strictLoopMs : burstMs)

  /** Adds 1 or -1 to the calls of an organization, of which only the first few count. */
  function add(organizationId: string, change: 1 | -1) {
    const before = waitingOf.get(organizationId) ?? 0
    const after = before + change
    waiting += Math.min(after, waitingOfOneMax) - Math.min(before, waitingOfOneMax)
    if (after === 0) waitingOf.delete(organizationId)
    else waitingOf.set(organizationId, after)
  }

  return {
    /** Throws if the process can take no more requests of this kind. Costs next to nothing. */
    refuse(kind: Kind) {
      const isOverloaded =
        kind === 'inference'
          ? isQueueTooLong() || isLoopTooSlow()
          : loop.behindMs() > administrationLoopMs
      if (!isOverloaded) return
      refusedAtMs = nowMs()
      metrics.requestsShed.inc({ kind })
      throw new ApiError(
        'overloaded',
        'The gateway has more calls than it can serve; retry later.',
        { headers: { 'retry-after': '1' } },
      )
    },
    /** A call waits from when it was read until its limits and credits are decided, or until it ends. */
    wait(organizationId: string) {
      add(organizationId, 1)
      let isWaiting = true
      const leave = (wasAdmitted: boolean) => {
        if (!isWaiting) return
        isWaiting = false
        add(organizationId, -1)
        if (wasAdmitted) admitted.count()
      }
      return { admit: () => leave(true), [Symbol.dispose]: () => leave(false) }
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
