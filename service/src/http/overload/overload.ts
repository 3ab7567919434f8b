import { ApiError } from '#platform/api-error.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import type { Metrics } from '#platform/metrics.ts'

import { createAdmissionQueue } from './admission-queue.ts'
import type { Line } from './line.ts'
import { createLoopWatch } from './loop-watch.ts'

/** For how long all turns of the event loop may be long before calls are refused: during an overload, and otherwise. */
const overloadedLoopMs = 200
const loopMs = 2000
/** Longer for administration, because an administrator may be fixing the cause of the overload. */
const administrationLoopMs = 5000
/** With fewer waiting calls, turns are long because other programs use the machine: refusing calls would not help. */
const busyMin = 20
type Kind = 'inference' | 'administration'

/**
 * Refuses calls when the process has more work than it can do, if possible before it has spent any work on them, so that the
 * other calls stay fast. There are two signs of an overload: for too long there have been calls waiting for their limits and
 * credits to be decided, or every turn of the event loop is long.
 */
export function createOverload(metrics: Pick<Metrics, 'requestsShed'>, nowMs = defaultNow) {
  const queue = createAdmissionQueue(nowMs)
  const admitted = createRate(nowMs)
  const loop = createLoopWatch(nowMs, () => queue.refuseLate((line) => refusal('inference', line)))

  function isLoopTooSlow(line: Line): boolean {
    const limitMs = line.isOverloaded() ? overloadedLoopMs : loopMs
    return line.waiting() >= busyMin && loop.behindMs() > limitMs
  }

  function refusal(kind: Kind, line?: Line) {
    line?.noteRefusal()
    metrics.requestsShed.inc({ kind })
    return new ApiError(
      'overloaded',
      'The gateway has more calls than it can serve; retry later.',
      { headers: { 'retry-after': '1' }, refusedBy: { scope: 'process', metric: 'overload' } },
    )
  }

  return {
    /** Throws if there is no room for another call of this organization or, while the organization is unknown, of any. */
    refuseInference(organizationId?: string) {
      const line = queue.lineOf(organizationId)
      if (line.isTooLong(admitted.perSecond()) || isLoopTooSlow(line)) {
        throw refusal('inference', line)
      }
    },
    refuseAdministration() {
      if (loop.behindMs() > administrationLoopMs) throw refusal('administration')
    },
    /** Waits for the turn of a call. The turn ends when its limits and credits are decided, or when the call ends. */
    async waitForTurn(organizationId: string, cancellation: Cancellation) {
      const leave = await queue.enter(organizationId, cancellation)
      let isOver = false
      const end = (wasAdmitted: boolean) => {
        if (isOver) return
        isOver = true
        if (wasAdmitted) admitted.count()
        leave()
      }
      return { admit: () => end(true), [Symbol.dispose]: () => end(false) }
    },
    stop: loop.stop,
  }
}
export type Overload = ReturnType<typeof createOverload>

/** Counts calls per second: the higher of the current second and the one before it. */
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
