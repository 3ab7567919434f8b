/** How long a call may wait for its turn. If there is always a call waiting for longer than this, it is an overload. */
const burstMs = 2000
/** How many calls may wait at once: not even an idle process could serve more in good time. */
const waitingMax = 1000
/** In an overload: how long a call may wait. As many may wait as are admitted in that time, but always a few. */
const overloadedWaitMs = 250
const overloadedWaitingMin = 20
/** How long it takes after the last refusal until a burst is taken for a burst again. */
const calmMs = 1000

/** Calls that wait for their turn, and whether there are more than the process can serve. */
export function createLine(nowMs: () => number) {
  let waiting = 0
  /** Since when there has always been a waiting call. */
  let waitingSinceMs = 0
  let refusedAtMs = -Infinity

  /** Whether this is more than a burst. Five hundred callers who come at once are not an overload. */
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
