/** How long a call may wait for its turn. A line that has had waiting calls for longer than this is overloaded. */
const burstMs = 2000
/** How many calls may wait at once. Even an idle process could not serve more in acceptable time. */
const waitingMax = 1000
/**
 * How long a call may wait during an overload. As many calls may wait as the process admits in that time, but at least
 * `overloadedWaitingMin`.
 */
const overloadedWaitMs = 250
const overloadedWaitingMin = 20
/** For this long after the last refusal, a line with waiting calls still counts as overloaded and not as a burst. */
const calmMs = 1000

/** Calls that wait for their turn, and whether there are more than the process can serve. */
export function createLine(nowMs: () => number) {
  let waiting = 0
  /** Since when the line has never been empty. */
  let waitingSinceMs = 0
  let refusedAtMs = -Infinity

  /** Whether this is more than a burst. Five hundred callers who arrive at once are not yet an overload. */
  function isOverloaded(): boolean {
    if (nowMs() - refusedAtMs < calmMs) return true
    return waiting > 0 && nowMs() - waitingSinceMs > burstMs
  }

  return {
    enter() {
      if (waiting === 0) waitingSinceMs = nowMs()
      waiting++
    },
    leave: () => void waiting--,
    noteRefusal: () => void (refusedAtMs = nowMs()),
    isOverloaded,
    waiting: () => waiting,
    waitMaxMs: () => (isOverloaded() ? overloadedWaitMs : burstMs),
    /** @param admittedPerSecond How many calls of all organizations were admitted lately. */
    isTooLong(admittedPerSecond: number): boolean {
      if (!isOverloaded()) return waiting >= waitingMax
      const inTime = (admittedPerSecond * overloadedWaitMs) / 1000
      return waiting >= Math.max(overloadedWaitingMin, inTime)
    },
  }
}
export type Line = ReturnType<typeof createLine>
