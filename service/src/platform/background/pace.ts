/**
 * Says how long work has to rest, so that it takes at most `share` of the time that passes. Each piece of work pays for itself:
 * a task that had nothing to do for an hour has saved up nothing, and does not burst afterwards. What several pieces of work
 * that overlap owe is added up, and so is a rest that was not taken in full. No rest is longer than `restMaxMs`, and what would go
 * beyond it is forgotten: a step that waited for a lock, or in a paused process, must not keep its task away for long.
 */
export function createPace(share: number, restMaxMs: number) {
  let freeAtMs = -Infinity
  /** `workedMs` have just ended at `nowMs`. Returns how long to rest from then on. */
  return (workedMs: number, nowMs: number): number => {
    const owedUntilMs = Math.max(freeAtMs, nowMs - workedMs) + workedMs / share
    freeAtMs = Math.min(owedUntilMs, nowMs + restMaxMs)
    return Math.max(0, freeAtMs - nowMs)
  }
}
