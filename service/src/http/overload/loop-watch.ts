const checkedEveryMs = 20
/** A turn of the event loop that ends this late counts as long. */
const longTurnMs = 50
/** One large body can make a turn long. Only several in a row mean that work arrives faster than it is done. */
const turnsMin = 3

/** Measures for how long every turn of the event loop has been long. */
export function createLoopWatch(nowMs: () => number, onTurn: () => void = () => undefined) {
  let dueAtMs = nowMs() + checkedEveryMs
  let behindSinceMs = 0
  let longTurns = 0

  function check() {
    const lateMs = nowMs() - dueAtMs
    if (lateMs < longTurnMs) longTurns = 0
    else if (++longTurns === 1) behindSinceMs = dueAtMs
    dueAtMs = nowMs() + checkedEveryMs
    onTurn()
  }
  const timer = setInterval(check, checkedEveryMs).unref()

  return {
    check,
    behindMs: (): number => (longTurns < turnsMin ? 0 : nowMs() - behindSinceMs),
    stop: () => clearInterval(timer),
  }
}
